import type { ArgumentSpec, Example, OptionSpecs } from "./command.ts";
import type { Target } from "./find-command.ts";
import { flagsOf, groupOptions, optionsOf } from "./options.ts";
import type { Output } from "./output.ts";

/** Lines longer than this are hard to read, however wide the terminal is. */
const MAX_WIDTH = 100;

/** The help of a command, of a group of commands, or of the program. Every one ends with examples. */
export function renderHelp(target: Target, output: Pick<Output, "style" | "columns">): string {
  const { examples } = "command" in target ? target.command : target.group;
  return [
    `${output.style.bold("Usage:")} ${usageOf(target)}`,
    target.summary,
    ...renderLists(target, output),
    detailsOf(target),
    renderExamples(examples, output),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function usageOf(target: Target): string {
  const name = ["plimsoll", ...target.path].join(" ");
  if ("group" in target) return `${name} COMMAND [options]`;
  return [name, "[options]", ...(target.command.arguments ?? []).map(shownArgument)].join(" ");
}

function shownArgument({ name, optional, repeated }: ArgumentSpec): string {
  const shown = repeated ? `${name}...` : name;
  return optional ? `[${shown}]` : `<${shown}>`;
}

type Row = readonly [term: string, meaning: string];

/** Arguments, options and commands, all with one width of the left column. */
function renderLists(target: Target, { style, columns }: Pick<Output, "style" | "columns">): string[] {
  const lists: readonly (readonly [title: string, rows: readonly Row[]])[] =
    "command" in target
      ? [
          [
            "Arguments:",
            (target.command.arguments ?? []).map(({ name, summary }) => [name, summary] as const),
          ],
          ["Options:", optionRows(optionsOf(target.command))],
        ]
      : [
          ["Options:", optionRows(groupOptions(target.path))],
          ["Commands:", target.group.subcommands.map(({ name, summary }) => [name, summary] as const)],
        ];
  const width = Math.max(...lists.flatMap(([, rows]) => rows.map(([term]) => term.length)));
  const room = Math.min(columns || MAX_WIDTH, MAX_WIDTH) - width - 4;
  return lists
    .filter(([, rows]) => rows.length > 0)
    .map(([title, rows]) =>
      [style.bold(title), ...rows.map((row) => renderRow(row, width, room))].join("\n"),
    );
}

function optionRows(options: OptionSpecs): Row[] {
  return Object.entries(options).map(([name, spec]) => {
    const flags = flagsOf(name, spec).reverse().join(", ");
    const term = spec.value === undefined ? flags : `${flags} <${spec.value}>`;
    return [term, spec.choices === undefined ? spec.summary : `${spec.summary}: ${spec.choices.join(", ")}`];
  });
}

function renderRow([term, meaning]: Row, width: number, room: number): string {
  const indent = " ".repeat(width + 4);
  return `  ${term.padEnd(width)}  ${wrap(meaning, room).join(`\n${indent}`)}`;
}

function wrap(text: string, room: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= room)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

function detailsOf(target: Target): string {
  return "command" in target
    ? (target.command.details ?? "")
    : `"plimsoll help ${[...target.path, "COMMAND"].join(" ")}" tells more about a command.`;
}

function renderExamples(examples: readonly Example[], { style }: Pick<Output, "style">): string {
  const width = Math.max(...examples.map(({ line }) => line.length));
  const lines = examples.map(({ line, meaning }) => `  ${line.padEnd(width)}  ${style.dim(meaning)}`);
  return [style.bold("Examples:"), ...lines].join("\n");
}
