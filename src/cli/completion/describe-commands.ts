import type { Command, CommandEntry, OptionSpecs } from "../command.ts";
import { flagsOf, groupOptions, optionsOf } from "../options.ts";

/** All that a shell needs to know of one place in the command line. The program itself is the place with an empty path. */
export interface CompletionNode {
  readonly path: readonly string[];
  readonly children: readonly { readonly name: string; readonly summary: string }[];
  readonly options: readonly CompletionOption[];
  /** Fixed values of the arguments. */
  readonly choices: readonly string[];
  readonly takesFiles: boolean;
}

export interface CompletionOption {
  /** Long name without dashes. */
  readonly name: string;
  readonly short: string | undefined;
  readonly flags: readonly string[];
  readonly summary: string;
  readonly value: string | undefined;
  readonly list: boolean;
  readonly choices: readonly string[];
}

/** The whole table as a flat list, outermost first. Loads every command. */
export async function describeCommands(table: readonly CommandEntry[]): Promise<CompletionNode[]> {
  const help = { name: "help", summary: "show the help of a command" };
  const root: CompletionNode = {
    path: [],
    children: [...table, help],
    options: describeOptions(groupOptions([])),
    choices: [],
    takesFiles: false,
  };
  return [root, ...(await describeEntries(table, []))];
}

async function describeEntries(
  entries: readonly CommandEntry[],
  parent: readonly string[],
): Promise<CompletionNode[]> {
  const nodes: CompletionNode[] = [];
  for (const entry of entries) {
    const path = [...parent, entry.name];
    const found = await entry.load();
    if ("subcommands" in found) {
      nodes.push({
        path,
        children: found.subcommands,
        options: describeOptions(groupOptions(path)),
        choices: [],
        takesFiles: false,
      });
      nodes.push(...(await describeEntries(found.subcommands, path)));
    } else nodes.push(describeCommand(found, path));
  }
  return nodes;
}

function describeCommand(command: Command, path: readonly string[]): CompletionNode {
  const specs = command.arguments ?? [];
  return {
    path,
    children: [],
    options: describeOptions(optionsOf(command)),
    choices: specs.flatMap(({ choices = [] }) => choices),
    takesFiles: specs.some(({ choices }) => choices === undefined),
  };
}

function describeOptions(options: OptionSpecs): CompletionOption[] {
  return Object.entries(options).map(([name, spec]) => {
    const { short, summary, value, list = false, choices = [] } = spec;
    return { name, short, flags: flagsOf(name, spec), summary, value, list, choices };
  });
}
