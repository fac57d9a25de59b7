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
import { type Caller, chooseCounter, renderTable, type Style, shownPath } from "../../host/index.ts";
import { describePack, type ListedPack, loadPacksContent, type PacksContent } from "../../rules/index.ts";
import { trimPacks } from "../../rules/packs/index.ts";
import { type Command, type CommandGroup, defineCommand, subcommand } from "../command.ts";
import { renderProblems, reportProblems } from "../render-problems.ts";
import { contentChoice, contentOptions, counterOptions } from "../shared-options.ts";

export const packsCommand: CommandGroup = {
  subcommands: [
    subcommand("list", "list packs: which are used, why, and the tokens of each tier", () => listCommand),
    subcommand("show", "show one pack: where it comes from, what replaces it, its text", () => showCommand),
    subcommand("lint", "find mistakes in packs, profiles and adapters", () => lintCommand),
  ],
  examples: [
    { line: "plimsoll packs list", meaning: "the packs of this project" },
    { line: "plimsoll packs show base", meaning: "one pack, whole" },
    { line: "plimsoll packs lint", meaning: "find mistakes in packs" },
  ],
};

const listCommand: Command = defineCommand({
  options: {
    profile: { value: "ID", summary: "use the order and weights of this profile" },
    ...contentOptions,
    ...counterOptions,
  },
  details: `Lists the packs that inject uses in the order in which it writes them: base packs, then by weight, then by
id. Then lists the packs that it does not use. The last column is the reason. Shows the tokens of the pack's text in
each tier, counted with --counter, or else for --model, or else as the configuration says, or else as inject
does.`,
  examples: [
    { line: "plimsoll packs list", meaning: "the packs of this project" },
    { line: "plimsoll packs list --profile frontend", meaning: "the order of another profile" },
    { line: "plimsoll packs list --content examples/sap", meaning: "the packs of another directory" },
    { line: "plimsoll packs list --json | jq '.[] | {id, tokens}'", meaning: "JSON for programs" },
  ],
  async run(call) {
    const content = await loadPacksContent(contentChoice(call.options), call);
    const failed = reportProblems(content.problems, call);
    const counter = await chooseCounter(call, "auto", { quiet: true });
    const choices = [...content.choices].sort((a, b) => Number(b.used) - Number(a.used));
    const rows = choices.map((choice) => describePack(choice, { counter, profile: content.profile }));
    return { json: rows, text: renderList(rows, counter.name, call.output.style), failed };
  },
});

function renderList(packs: readonly ListedPack[], counter: string, style: Style): string {
  if (packs.length === 0) return "found no packs here";
  // Few projects have them.
  const lists = (["globs", "skills", "commands", "agents"] as const).filter((key) =>
    packs.some((pack) => (pack[key] ?? []).length > 0),
  );
  const rows = packs.map((pack) => [
    printable(pack.id),
    pack.used ? "yes" : "no",
    pack.layer,
    `${pack.weight}${pack.base ? " base" : ""}`,
    ...[pack.tokens.core, pack.tokens.detail, pack.tokens.extended].map(formatNumber),
    ...(["overlaps", ...lists] as const).map((key) => printable((pack[key] ?? []).join(", "))),
    printable(pack.why),
  ]);
  const headings = ["pack", "used", "layer", "weight", "core", "detail", "extended", "overlaps", ...lists, "why"];
  const sides = headings.map((name) => (["core", "detail", "extended"].includes(name) ? "right" : "left"));
  return [...renderTable([headings, ...rows], sides, style), style.dim(`tokens by ${counter}`)].join("\n");
}

const lintCommand: Command = defineCommand({
  options: { ...contentOptions },
  details: `Reports every problem with file and line: keys and values that break the schemas; unknown pack ids in
overlaps, profiles and the configuration; packs that overlap each other in a cycle; packs that share 60 % or more of
their 5-word runs without declaring it; markers without text; headings of level 1; invalid sync:fetch lines; packs
that exceed every budget; files of a pack that are not read. Packs that ship with plimsoll are not checked. The exit
code is 1 if there is an error; warnings leave it 0.`,
  examples: [
    { line: "plimsoll packs lint", meaning: "the packs of this project" },
    { line: "plimsoll packs lint --content .", meaning: "in a repository of packs" },
    {
      line: "plimsoll packs lint --json | jq '.[] | select(.severity == \"error\")'",
      meaning: "JSON for programs",
    },
  ],
  async run(call) {
    const { lintContent } = await import("../../rules/adapters/lint-content.ts");
    const { problems, packs } = await lintContent(contentChoice(call.options), call);
    const shown = problems.map((each) => ({ ...each, file: shownPath(each.file, call.cwd, call.env) || "." }));
    return {
      json: shown,
      text: renderProblems(shown, { count: packs, noun: "pack" }),
      failed: shown.some(({ severity }) => severity === "error"),
    };
  },
});

const showCommand: Command = defineCommand({
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
    ["commands", (pack.commands ?? []).join(", ")],
    ["agents", (pack.agents ?? []).join(", ")],
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
