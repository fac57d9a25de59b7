import { isAbsolute } from "node:path";
import {
  formatNumber,
  printable,
  printableLines,
  textAt,
  unknownName,
  type Verbosity,
  verbosities,
} from "../../core/text/index.ts";
import type { Caller, Style } from "../../host/index.ts";
import { chooseCounter, renderTable, shownPath } from "../../host/index.ts";
import type { PackChoice } from "../../rules/index.ts";
import { describePack, type ListedPack, loadPacksContent, type PacksContent } from "../../rules/index.ts";
import { type Pack, trimPacks } from "../../rules/packs/index.ts";
import { type Command, defineCommand } from "../command.ts";
import { reportProblems } from "../render-problems.ts";
import { contentChoice, contentOptions, counterOptions } from "../shared-options.ts";

export const showCommand: Command = defineCommand({
  arguments: [{ name: "ID", summary: "the pack" }],
  options: {
    verbosity: {
      value: "LEVEL",
      choices: verbosities,
      summary: "how much of its text to show (default: full)",
    },
    profile: { value: "ID", summary: "show it as this profile uses it" },
    ...contentOptions,
    ...counterOptions,
  },
  details: `Shows the pack's settings, the files that it comes from, whether another pack replaces it in this
profile, and its text (preamble, constraints and context) at the chosen verbosity.`,
  examples: [
    { line: "plimsoll packs show base", meaning: "one pack, whole" },
    { line: "plimsoll packs show base --verbosity minimal", meaning: "only its core" },
    { line: "plimsoll packs show node --profile frontend", meaning: "whether this profile includes it" },
    { line: "plimsoll packs show base --json | jq -r .text", meaning: "JSON for programs" },
  ],
  async run(call) {
    const content = await loadPacksContent(contentChoice(call.options), call);
    const failed = reportProblems(content.problems, call);
    const choice = findPack(call.arguments[0]!, content);
    const { pack } = choice;
    const verbosity = (call.options.verbosity as Verbosity | undefined) ?? "full";
    const counter = await chooseCounter(call, "auto", { quiet: true });
    const shown: ShownPack = {
      ...describePack(choice, { counter, profile: content.profile }),
      description: pack.description,
      tags: pack.tags,
      versions: pack.versions,
      sources: sourcesOf(pack.id, content, call),
      profile: content.profile.id,
      ...fateOf(pack.id, content),
      counter: counter.name,
      verbosity,
      text: textOf(pack, verbosity),
    };
    return { json: shown, text: renderPack(shown, call.output.style), failed };
  },
});

interface ShownPack extends ListedPack {
  readonly description: string;
  readonly tags: readonly string[];
  readonly versions: Readonly<Record<string, string>>;
  /** Lowest layer first; several if a pack adds to another. */
  readonly sources: readonly { readonly layer: string; readonly directory: string | null }[];
  readonly profile: string;
  /** Whether the profile keeps it, before any budget. */
  readonly kept: boolean;
  /** The pack that replaces it in this profile. */
  readonly droppedBy: string | null;
  readonly counter: string;
  readonly verbosity: Verbosity;
  readonly text: string;
}

/** Finds a pack, even if it is not used. */
function findPack(id: string, { choices }: PacksContent): PackChoice {
  const choice = choices.find(({ pack }) => pack.id === id);
  if (choice !== undefined) return choice;
  throw unknownName(id, { kind: "pack", known: choices.map(({ pack }) => pack.id).sort() });
}

/** A pack that is not additive hides packs with its id in lower layers. */
function sourcesOf(id: string, { layers }: PacksContent, { cwd, env }: Caller): ShownPack["sources"] {
  const found = layers.flatMap(({ layer, sources }) =>
    sources.filter((source) => source.id === id).map((source) => ({ layer, source })),
  );
  const first = Math.max(
    0,
    found.findLastIndex(({ source }) => !source.additive),
  );
  return found.slice(first).map(({ layer, source: { directory } }) => ({
    layer,
    // A built-in pack is compiled, so its directory does not exist here.
    directory: isAbsolute(directory) ? shownPath(directory, cwd, env) : null,
  }));
}

function fateOf(id: string, { packs }: PacksContent): Pick<ShownPack, "kept" | "droppedBy"> {
  const trimmed = trimPacks(packs, 0, "full");
  return {
    kept: trimmed.packs.some((pack) => pack.id === id),
    droppedBy: trimmed.dropped.find((pack) => pack.id === id)?.by ?? null,
  };
}

function textOf({ preamble, constraints, context }: Pack, verbosity: Verbosity): string {
  const parts = [preamble, textAt(constraints, verbosity), textAt(context, verbosity)];
  return parts
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .join("\n\n");
}

function renderPack(pack: ShownPack, style: Style): string {
  const { core, detail, extended } = pack.tokens;
  const tokens = [`core ${formatNumber(core)}`, `detail ${formatNumber(detail)}`, `extended ${formatNumber(extended)}`];
  const rows = [
    ["pack", pack.name === pack.id ? pack.id : `${pack.id}: ${pack.name}`],
    ["about", pack.description],
    ["tags", pack.tags.join(", ")],
    [
      "from",
      pack.sources
        .map(({ layer, directory }) => `${layer}${directory === null ? "" : ` ${directory}`}`)
        .join(", then "),
    ],
    ["weight", `${pack.weight}${pack.base ? ", base" : ""}`],
    ["overlaps", pack.overlaps.join(", ")],
    ["globs", [...pack.globs, ...(pack.nested ? ["nested"] : [])].join(", ")],
    ["skills", pack.skills.join(", ")],
    [
      "versions",
      Object.entries(pack.versions)
        .map((pair) => pair.join(" "))
        .join(", "),
    ],
    ["tokens", `${tokens.join(", ")} (${pack.counter})`],
    ["profile", `${pack.profile}: ${renderFate(pack)}`],
  ];
  const shown = rows.filter(([, value]) => value !== "").map((row) => row.map(printable));
  const lines = renderTable(shown, ["left", "left"]);
  const rule = style.dim(`--- text at ${pack.verbosity} ---`);
  return [...lines, rule, printableLines(pack.text)].join("\n");
}

function renderFate({ kept, droppedBy, why }: ShownPack): string {
  if (droppedBy !== null) return `dropped, "${droppedBy}" comes before it and replaces it`;
  return `${kept ? "kept" : "left out"} (${why})`;
}
