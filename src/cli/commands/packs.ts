import { formatNumber, printable } from "../../core/text/index.ts";
import { chooseCounter, counterOptions } from "../../host/config/choose-counters.ts";
import type { Style } from "../../host/index.ts";
import { renderTable } from "../../host/index.ts";
import {
  contentOptions,
  describePack,
  type ListedPack,
  loadPacksContent,
  reportProblems,
} from "../../rules/adapters/packs-content.ts";
import { type Command, type CommandGroup, defineCommand } from "../command.ts";

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
      load: async () => (await import("./packs-lint.ts")).lintCommand,
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
    const content = await loadPacksContent(call);
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
    ...[printable(pack.id), pack.used ? "yes" : "no", pack.layer, `${pack.weight}${pack.base ? " base" : ""}`],
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
