import { isAbsolute } from "node:path";
import { ContextError } from "../../errors.ts";
import { mergeLayers, type Pack, trimPacks } from "../../packs/index.ts";
import {
  didYouMean,
  formatNumber,
  printable,
  printableLines,
  textAt,
  type Verbosity,
  verbosities,
} from "../../text/index.ts";
import { chooseCounter, counterOptions } from "../choose-counters.ts";
import { type Command, defineCommand } from "../command.ts";
import type { Style } from "../output.ts";
import { shownPath } from "../shown-path.ts";
import { renderTable } from "../table.ts";
import { describePack, type ListedPack } from "./list.ts";
import { type ContentCall, contentOptions, loadPacksContent, type PacksContent } from "./load-content.ts";
import { tellProblems } from "./tell-problems.ts";

export const showCommand: Command = defineCommand({
  arguments: [{ name: "ID", summary: "the pack" }],
  options: {
    verbosity: {
      value: "LEVEL",
      choices: verbosities,
      summary: "how many tiers of its text (default: full)",
    },
    profile: { value: "ID", summary: "as it stands in this profile" },
    ...contentOptions,
    ...counterOptions,
  },
  details: `What the pack says of itself, the files that it comes from, whether another pack replaces it in this profile, and its
text: preamble, constraints and context, as far as the verbosity goes.`,
  examples: [
    { line: "plimsoll packs show base", meaning: "all of a pack" },
    { line: "plimsoll packs show base --verbosity minimal", meaning: "its core only" },
    { line: "plimsoll packs show node --profile frontend", meaning: "whether this profile keeps it" },
    { line: "plimsoll packs show base --json | jq -r .text", meaning: "for programs" },
  ],
  async run(call) {
    const content = await loadPacksContent(call);
    const failed = tellProblems(content.problems, call);
    const pack = findPack(call.arguments[0]!, content);
    const verbosity = (call.options.verbosity as Verbosity | undefined) ?? "full";
    const counter = await chooseCounter(call, "bytes/4");
    const shown: ShownPack = {
      ...describePack(pack, { counter, profile: content.profile }),
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
  /** Lowest layer first; more than one where a pack adds to another. */
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

/** Also a pack that the profile leaves out. */
function findPack(id: string, { packs, layers, language }: PacksContent): Pack {
  const all = mergeLayers(layers, { language }).packs;
  const pack = packs.find((each) => each.id === id) ?? all.find((each) => each.id === id);
  if (pack !== undefined) return pack;
  const ids = all.map((each) => each.id);
  throw new ContextError("usage", `unknown pack "${id}"`, {
    hint: didYouMean(id, ids) ?? `Packs are ${ids.join(", ")}.`,
  });
}

/** A pack that is not additive hides those of its id below it. */
function sourcesOf(id: string, { layers }: PacksContent, { cwd, env }: ContentCall): ShownPack["sources"] {
  const found = layers.flatMap(({ layer, sources }) =>
    sources.filter((source) => source.id === id).map((source) => ({ layer, source })),
  );
  const first = Math.max(
    0,
    found.findLastIndex(({ source }) => !source.additive),
  );
  return found.slice(first).map(({ layer, source: { directory } }) => ({
    layer,
    // A pack that ships with the program was compiled, and its directory is relative to where that was done.
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
  const tokens = [
    `core ${formatNumber(core)}`,
    `detail ${formatNumber(detail)}`,
    `extended ${formatNumber(extended)}`,
  ];
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
  // Tabs are harmless, and code without them is other code.
  const text = pack.text.split("\t").map(printableLines).join("\t");
  return [...lines, rule, text].join("\n");
}

function renderFate({ kept, droppedBy }: ShownPack): string {
  if (droppedBy !== null) return `dropped, "${droppedBy}" comes before it and replaces it`;
  return kept ? "kept" : "left out";
}
