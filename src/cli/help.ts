import { Command as Parser } from "commander";
import { type Example, globalOptions } from "./command.ts";
import type { CommandTarget, GroupTarget, Target } from "./find-command.ts";
import type { Output } from "./output.ts";
import { createParser } from "./parse-arguments.ts";

/** The help of a command, of a group of commands, or of the program. Every one ends with examples. */
export function renderHelp(target: Target, output: Pick<Output, "style" | "columns">): string {
  const parser = "command" in target ? createParser(target) : listParser(target);
  parser.configureHelp({
    helpWidth: Math.min(output.columns || 100, 100),
    styleTitle: (title) => output.style.bold(title),
    visibleCommands: (command) => command.commands as Parser[],
  });
  parser.configureOutput({ getOutHasColors: () => true });
  const { examples } = "command" in target ? target.command : target.group;
  return [parser.helpInformation().trimEnd(), details(target), renderExamples(examples, output)]
    .filter(Boolean)
    .join("\n\n");
}

function listParser({ path, summary, group }: GroupTarget): Parser {
  const parser = new Parser(["plimsoll", ...path].join(" ")).usage("COMMAND [options]").description(summary);
  parser.helpOption(false).helpCommand(false);
  for (const each of group.subcommands) parser.command(each.name).description(each.summary);
  for (const [name, spec] of Object.entries(globalOptions)) {
    parser.option(`${spec.short !== undefined ? `-${spec.short}, ` : ""}--${name}`, spec.summary);
  }
  if (path.length === 0) parser.option("-V, --version", "show the version");
  return parser;
}

function details(target: CommandTarget | GroupTarget): string {
  return "command" in target
    ? (target.command.details ?? "")
    : `"plimsoll help ${[...target.path, "COMMAND"].join(" ")}" tells more about a command.`;
}

function renderExamples(examples: readonly Example[], { style }: Pick<Output, "style">): string {
  const width = Math.max(...examples.map(({ line }) => line.length));
  const lines = examples.map(({ line, meaning }) => `  ${line.padEnd(width)}  ${style.dim(meaning)}`);
  return [style.bold("Examples:"), ...lines].join("\n");
}
