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
import { describePack, type ListedPack, loadPacksContent, type PacksContent } from "../../rules/index.ts";
import { trimPacks } from "../../rules/packs/index.ts";
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
    const id = call.arguments[0]!;
    const choice = content.choices.find((each) => each.pack.id === id);
    if (choice === undefined) {
      throw unknownName(id, { kind: "pack", known: content.choices.map(({ pack }) => pack.id).sort() });
    }
    const { pack } = choice;
    const trimmed = trimPacks(content.packs, 0, "full");
    const verbosity = (call.options.verbosity as Verbosity | undefined) ?? "full";
    const counter = await chooseCounter(call, "auto", { quiet: true });
    const shown: ShownPack = {
      ...describePack(choice, { counter, profile: content.profile }),
      description: pack.description,
      tags: pack.tags,
      versions: pack.versions,
      sources: findSources(id, content, call),
      profile: content.profile.id,
      kept: trimmed.packs.some((each) => each.id === id),
      droppedBy: trimmed.dropped.find((each) => each.id === id)?.by ?? null,
      counter: counter.name,
      verbosity,
      text: [pack.preamble, textAt(pack.constraints, verbosity), textAt(pack.context, verbosity)]
        .map((part) => part.trim())
        .filter((part) => part !== "")
        .join("\n\n"),
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

/** Returns where a pack comes from. One that is not additive hides packs with its id in lower layers. */
function findSources(id: string, { layers }: PacksContent, { cwd, env }: Caller): ShownPack["sources"] {
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

function renderPack(pack: ShownPack, style: Style): string {
  const { core, detail, extended } = pack.tokens;
  const tokens = [`core ${formatNumber(core)}`, `detail ${formatNumber(detail)}`, `extended ${formatNumber(extended)}`];
  const fate =
    pack.droppedBy === null
      ? `${pack.kept ? "kept" : "left out"} (${pack.why})`
      : `dropped, "${pack.droppedBy}" comes before it and replaces it`;
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
    ["profile", `${pack.profile}: ${fate}`],
  ];
  const shown = rows.filter(([, value]) => value !== "").map((row) => row.map(printable));
  const lines = renderTable(shown, ["left", "left"]);
  const rule = style.dim(`--- text at ${pack.verbosity} ---`);
  return [...lines, rule, printableLines(pack.text)].join("\n");
}
