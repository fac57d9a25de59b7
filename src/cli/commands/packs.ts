import { formatNumber, printable } from "../../core/text/index.ts";
import type { Style } from "../../host/index.ts";
import { chooseCounter, renderTable, shownPath } from "../../host/index.ts";
import { describePack, type ListedPack, loadPacksContent } from "../../rules/index.ts";
import { type Command, type CommandGroup, defineCommand } from "../command.ts";
import { renderProblems, reportProblems } from "../render-problems.ts";
import { contentChoice, contentOptions, counterOptions } from "../shared-options.ts";

export const packsCommand: CommandGroup = {
  subcommands: [
    {
      name: "list",
      summary: "list packs: which are used, why, and the tokens of each tier",
      load: async () => listCommand,
    },
    {
      name: "show",
      summary: "show one pack: where it comes from, what replaces it, its text",
      load: async () => (await import("./packs-show.ts")).showCommand,
    },
    {
      name: "lint",
      summary: "find mistakes in packs, profiles and adapters",
      load: async () => lintCommand,
    },
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
  const lists = (["globs", "skills"] as const).filter((key) => packs.some((pack) => pack[key].length > 0));
  const rows = packs.map((pack) => [
    printable(pack.id),
    pack.used ? "yes" : "no",
    pack.layer,
    `${pack.weight}${pack.base ? " base" : ""}`,
    ...[pack.tokens.core, pack.tokens.detail, pack.tokens.extended].map(formatNumber),
    ...(["overlaps", ...lists] as const).map((key) => printable(pack[key].join(", "))),
    printable(pack.why),
  ]);
  const headings = ["pack", "used", "layer", "weight", "core", "detail", "extended", "overlaps", ...lists, "why"];
  const lines = renderTable(
    [headings, ...rows],
    headings.map((name) => (["core", "detail", "extended"].includes(name) ? "right" : "left")),
  );
  return [style.dim(lines[0]!), ...lines.slice(1), style.dim(`tokens by ${counter}`)].join("\n");
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
