import { type Command, type CommandEntry, globalOptions } from "../command.ts";
import { flagsOf } from "../find-command.ts";

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
    options: [...optionsOf({}), describeOption("version", { short: "V", summary: "show the version" })],
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
        options: optionsOf({}),
        choices: [],
        takesFiles: false,
      });
      nodes.push(...(await describeEntries(found.subcommands, path)));
    } else nodes.push(describeCommand(found, path));
  }
  return nodes;
}

function describeCommand(
  { arguments: specs = [], options }: Command,
  path: readonly string[],
): CompletionNode {
  return {
    path,
    children: [],
    options: optionsOf(options),
    choices: specs.flatMap(({ choices = [] }) => choices),
    takesFiles: specs.some(({ choices }) => choices === undefined),
  };
}

function optionsOf(options: Command["options"]): CompletionOption[] {
  return Object.entries({ ...options, ...globalOptions }).map(([name, spec]) => describeOption(name, spec));
}

function describeOption(name: string, spec: Command["options"][string]): CompletionOption {
  const { short, summary, value, list = false, choices = [] } = spec;
  return { name, short, flags: flagsOf(name, short), summary, value, list, choices };
}
