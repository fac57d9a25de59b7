/** A command: plain data for parsing, help and completion, and a `run`. */
import { usageError } from "../core/errors.ts";
import type { Caller } from "../host/index.ts";

/** A line of the command table. Its module is loaded only when the command is used. */
export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  load(): Promise<Command | CommandGroup>;
}

/** A line of a table. `find` is called when the command is used, so it may import a module or name a later constant. */
export function subcommand(
  name: string,
  summary: string,
  find: () => Command | CommandGroup | Promise<Command | CommandGroup>,
): CommandEntry {
  return { name, summary, load: async () => find() };
}

/** A command that only contains others: `plimsoll packs list`. */
export interface CommandGroup {
  readonly subcommands: readonly CommandEntry[];
  readonly examples: readonly Example[];
}

export interface Command {
  readonly arguments?: readonly ArgumentSpec[];
  readonly options: OptionSpecs;
  /** Paragraphs for the help, after the summary. */
  readonly details?: string;
  readonly examples: readonly Example[];
  /** The help of each value of the first argument, such as `mcp wrap`. */
  readonly actions?: Readonly<Record<string, ActionHelp>>;
  run(call: Call): Promise<CommandResult | CommandExit | undefined>;
}

export interface ActionHelp extends Omit<Command, "actions" | "run"> {
  readonly summary: string;
}

export interface ArgumentSpec {
  readonly name: string;
  readonly summary: string;
  readonly optional?: boolean;
  readonly repeated?: boolean;
  /** For words that go to another program. */
  readonly mayBeEmpty?: boolean;
  /** Whether the value has several words, so that a hint about quotes helps. */
  readonly isSentence?: boolean;
  /** The only allowed values. Without choices, completion offers files. */
  readonly choices?: readonly string[];
}

/** Options by long name without dashes. */
export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

export interface OptionSpec {
  readonly summary: string;
  readonly short?: string;
  /** The placeholder for the value in the help. Without it the option is a switch. */
  readonly value?: string;
  /** Whether it takes several values, separated by commas or by repeating the option. */
  readonly list?: boolean;
  readonly choices?: readonly string[];
  /** A switch that makes the option have no effect. Any value is allowed then. */
  readonly ignoredWith?: string;
}

export interface Example {
  readonly line: string;
  readonly meaning: string;
}

export type OptionValues<Specs extends OptionSpecs = OptionSpecs> = {
  readonly [Name in keyof Specs]?:
    | (Specs[Name] extends { list: true }
        ? readonly string[]
        : Specs[Name] extends { value: string }
          ? string
          : boolean)
    | undefined;
};

export interface Call<Values = OptionValues> extends Caller {
  readonly arguments: readonly string[];
  readonly options: Values;
  readonly stdin: AsyncIterable<Buffer>;
  readonly stdinKind: StdinKind;
  /** The table that contains this command. */
  readonly commands: readonly CommandEntry[];
}

/** `piped` is a pipe or a file; `other` is a terminal or nothing at all, such as /dev/null. */
export type StdinKind = "piped" | "directory" | "other";

/** The result of a command: `json` is printed with --json, `text` otherwise. Commands that use stdout for a protocol
 *  return nothing. */
export interface CommandResult {
  readonly json: unknown;
  /** Read only to print it, so it can be a getter if it is expensive. */
  readonly text: string;
  /** The text only says what the command did, so `--quiet` hides it. */
  readonly isReport?: boolean;
  /** Print the text exactly: no line break is added in a pipe or a file. */
  readonly exact?: boolean;
  /** An expected failure that was reported on stderr: exit 1. */
  readonly failed?: boolean;
  /** A person interrupted it: prints what exists, exit 130. */
  readonly interrupted?: boolean;
}

/** The exit code of another program that the command ran. */
export interface CommandExit {
  readonly exitCode: number;
}

/** Gives `run` the types that its own options declare. */
export function defineCommand<const Specs extends OptionSpecs>(
  command: Omit<Command, "options" | "run"> & {
    readonly options: Specs;
    run(call: Call<OptionValues<Specs>>): Promise<CommandResult | CommandExit | undefined>;
  },
): Command {
  return command as Command;
}

/** Throws on an option that only other actions of the command take. */
export function refuseOthers(
  action: string,
  given: Readonly<Record<string, unknown>>,
  { options, actions }: { readonly options: OptionSpecs; readonly actions: Readonly<Record<string, OptionSpecs>> },
): void {
  const names = Object.keys(options).filter((name) => given[name] !== undefined);
  const wrong = names.find((name) => !Object.hasOwn(actions[action]!, name));
  if (wrong === undefined) return;
  const takers = Object.keys(actions).filter((name) => Object.hasOwn(actions[name]!, wrong));
  throw usageError(`--${wrong} cannot be used with ${action}`, `It belongs to ${takers.join(" and ")}.`);
}

/** What a command line asks for: a command, or a group of commands (`path` is empty for the whole program). */
export type Target = CommandTarget | GroupTarget;

export interface Program extends CommandGroup {
  readonly summary: string;
}

export interface CommandTarget {
  readonly path: readonly string[];
  readonly summary: string;
  readonly command: Command;
  readonly rest: readonly string[];
}

export interface GroupTarget {
  readonly path: readonly string[];
  readonly summary: string;
  readonly group: CommandGroup;
  readonly rest: readonly string[];
}
