/** What a command is: plain data that parsing, help and completion all read, and a `run`. */
import type { Environment } from "../workspace/index.ts";
import type { Output } from "./output.ts";

/** A line of the command table. The module behind it is loaded only when the command is used. */
export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  load(): Promise<Command | CommandGroup>;
}

/** A command that only holds others: `plimsoll packs list`. */
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
  run(call: Call): Promise<CommandResult | CommandExit | undefined>;
}

export interface ArgumentSpec {
  readonly name: string;
  readonly summary: string;
  readonly optional?: boolean;
  readonly repeated?: boolean;
  /** For words that are meant for another program. */
  readonly mayBeEmpty?: boolean;
  /** Several words: who forgets to quote them is told so. */
  readonly isSentence?: boolean;
  /** Anything else is wrong usage. Without choices, completion offers files. */
  readonly choices?: readonly string[];
}

/** By long name without the dashes. */
export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

export interface OptionSpec {
  readonly summary: string;
  readonly short?: string;
  /** What stands for the value in the help. Without it the option is a switch. */
  readonly value?: string;
  /** Several values, joined by commas or by repeating the option. */
  readonly list?: boolean;
  readonly choices?: readonly string[];
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

export interface Call<Values = OptionValues> {
  readonly arguments: readonly string[];
  readonly options: Values;
  readonly cwd: string;
  readonly env: Environment;
  readonly stdin: AsyncIterable<Buffer>;
  readonly stdinKind: StdinKind;
  readonly output: Output;
  /** The table that this command stands in. */
  readonly commands: readonly CommandEntry[];
}

/** `piped` is a pipe or a file; `other` is a terminal or nothing at all, such as /dev/null. */
export type StdinKind = "piped" | "directory" | "other";

/** The frame prints one of the two forms. Commands that speak a protocol on stdout themselves return nothing. */
export interface CommandResult {
  readonly json: unknown;
  /** Read only to be printed: where it is dear to make, it can be a getter. */
  readonly text: string;
  /** The text is what it is to its last byte, as for a model: into a pipe or a file no line break is added. */
  readonly exact?: boolean;
  /** An expected failure, already told on stderr: exit 1. */
  readonly failed?: boolean;
  /** A person ended it before it was done: what there is is printed, exit 130. */
  readonly interrupted?: boolean;
}

/** Of a command that ran another program on stdout, and ends as that one did. */
export interface CommandExit {
  readonly exitCode: number;
}

type TypedCommand<Specs extends OptionSpecs> = Omit<Command, "options" | "run"> & {
  readonly options: Specs;
  run(call: Call<OptionValues<Specs>>): Promise<CommandResult | CommandExit | undefined>;
};

/** Gives `run` the types that its own options declare. */
export function defineCommand<const Specs extends OptionSpecs>(command: TypedCommand<Specs>): Command {
  return command as Command;
}
