/** Runs one command line: find the command, parse, run, print. Never throws: the result is the exit code. */
import { fstatSync, writeSync } from "node:fs";
import { ContextError, usageError } from "../core/errors.ts";
import { didYouMean } from "../core/text/index.ts";
import type { Environment } from "../host/index.ts";
import { createOutput, type ExitCode, exitCodes, type Output, reportError, type TextStream } from "../host/index.ts";
import type {
  Call,
  CommandEntry,
  CommandResult,
  CommandTarget,
  GroupTarget,
  OptionSpecs,
  Program,
  StdinKind,
  Target,
} from "./command.ts";
import { commandTable } from "./commands/index.ts";
import {
  groupOptions,
  isSwitchedOn,
  listFlags,
  parseArguments,
  unknownSwitch,
  withGlobalOptions,
} from "./parse-arguments.ts";
import { readVersion } from "./version.ts";

/** The process, or a stand-in for it in tests. */
export interface World {
  readonly env: Environment;
  readonly stdin: AsyncIterable<Buffer>;
  readonly stdinKind: StdinKind;
  readonly stdout: TextStream;
  readonly stderr: TextStream;
  cwd(): string;
}

const program: Program = {
  summary: "Keeps what AI tools and agents read within token budgets.",
  subcommands: commandTable,
  examples: [
    { line: "plimsoll inject --dry-run --stats", meaning: "what AI tools would get here, and how many tokens" },
    { line: "plimsoll count .", meaning: "how many tokens this directory holds" },
    { line: "git diff | plimsoll count --model gpt-5", meaning: "how many tokens a diff is for a model" },
    { line: "plimsoll help count", meaning: "the help of one command" },
  ],
};

export async function runCli(args: readonly string[], world: World, commands: Program = program): Promise<number> {
  const has = (name: Parameters<typeof isSwitchedOn>[0]) => isSwitchedOn(name, args);
  const { env, stdout, stderr } = world;
  const output = createOutput({ env, stdout, stderr, json: has("json"), quiet: has("quiet") });
  try {
    const first = args.findIndex((each) => !each.startsWith("-"));
    const helpAsked = args[first] === "help";
    const target = await findCommand(helpAsked ? args.toSpliced(first, 1) : args, commands);
    if ("group" in target && has("version")) {
      return printResult({ json: { version: readVersion() }, text: readVersion() }, output);
    }
    if ("group" in target || helpAsked || has("help")) {
      const shown = helpTarget(target, helpAsked);
      const { examples } = "command" in shown ? shown.command : shown.group;
      const width = Math.max(...examples.map(({ line }) => line.length));
      const lines = examples.map(({ line, meaning }) => `  ${line.padEnd(width)}  ${output.style.dim(meaning)}`);
      const help = [
        `${output.style.bold("Usage:")} ${renderUsage(shown)}`,
        shown.summary,
        ...renderLists(shown, output),
        "command" in shown
          ? (shown.command.details ?? "")
          : `"plimsoll help ${[...shown.path, "COMMAND"].join(" ")}" shows the help of a command.`,
        [output.style.bold("Examples:"), ...lines].join("\n"),
      ]
        .filter((part) => part !== "")
        .join("\n\n");
      return printResult({ json: { help }, text: help }, output);
    }
    return await runCommand(target, world, { output, commands: commands.subcommands });
  } catch (error) {
    return reportError(error, output);
  }
}

async function runCommand(
  target: CommandTarget,
  world: World,
  { output, commands }: Pick<Call, "output" | "commands">,
): Promise<number> {
  const parsed = parseArguments(target);
  const env = parsed.options.trust === true ? { ...world.env, PLIMSOLL_TRUST: "1" } : world.env;
  const result = await target.command.run({
    ...parsed,
    cwd: currentDirectory(world),
    env,
    // Node's stream takes a millisecond to load, and few commands read it.
    get stdin() {
      return world.stdin;
    },
    stdinKind: world.stdinKind,
    commands,
    output,
  });
  output.settle();
  if (result === undefined) return exitCodes.done;
  return "exitCode" in result ? result.exitCode : printResult(result, output);
}

function printResult(result: CommandResult, output: Output): ExitCode {
  const printed = output.json ? JSON.stringify(result.json, null, 2) : result.text;
  const print = result.exact && !output.json ? output.exactResult : output.result;
  const isHidden = result.isReport === true && output.quiet && !output.json;
  if (printed !== "" && !isHidden) print(printed);
  if (result.interrupted) return exitCodes.interrupted;
  return result.failed ? exitCodes.failed : exitCodes.done;
}

function currentDirectory(world: World): string {
  try {
    return world.cwd();
  } catch (cause) {
    throw new ContextError("unreadable_input", "the current directory no longer exists", {
      hint: "Change to one that does.",
      cause,
    });
  }
}

/** Runs the command line of this process. Sets the exit code instead of exiting, so that buffered output is written. */
export async function runProcess(): Promise<void> {
  const { env } = process;
  const args = process.argv.slice(2);
  const stderr = openStream("stderr", () => {});
  const stdout = openStream("stdout", (error) => {
    // A reader that closes the pipe early, such as head, is not a failure.
    if (error.code === "EPIPE") process.exit();
    const reason = error.code === "ENOSPC" ? "no space left" : String(error.code);
    report(new ContextError("write_failed", `cannot write to standard output: ${reason}`), false);
  });
  const report = (error: unknown, json: boolean) =>
    process.exit(reportError(error, createOutput({ stdout, stderr, env, json, quiet: false })));
  process.on("SIGINT", () => {
    if (stderr.isTTY) stderr.write("\n");
    process.exit(exitCodes.interrupted);
  });
  process.on("uncaughtException", (error) => report(error, isSwitchedOn("json", args)));
  process.exitCode = await runCli(args, {
    env,
    get stdin() {
      return process.stdin;
    },
    stdinKind: kindOfStdin(),
    stdout,
    stderr,
    cwd: () => process.cwd(),
  });
}

/** Returns the stream, and handles its errors. A file or a pipe is written to directly: Node's stream for it takes two
 *  milliseconds to load. */
function openStream(name: "stdout" | "stderr", onError: (error: NodeJS.ErrnoException) => void): TextStream {
  const descriptor = { stdout: 1, stderr: 2 }[name];
  const openNodeStream = () => process[name].on("error", onError);
  const stats = fstatSync(descriptor);
  const isPlain = stats.isFIFO() || stats.isFile() || stats.isSocket();
  if (!isPlain || process.platform === "win32") return openNodeStream();
  let stream: TextStream | undefined;
  const write = (text: string) => {
    let rest: Uint8Array = Buffer.from(text);
    try {
      while (stream === undefined && rest.length > 0) rest = rest.subarray(writeSync(descriptor, rest));
    } catch (error) {
      // A pipe that does not block is full. Node's stream waits for its reader.
      if ((error as NodeJS.ErrnoException).code === "EAGAIN") stream = openNodeStream();
      else onError(error as NodeJS.ErrnoException);
    }
    return stream?.write(rest as Buffer & string);
  };
  return { write };
}

/** Checks the descriptor, because Node's stream of a directory is just empty. */
function kindOfStdin(): StdinKind {
  const stats = fstatSync(0);
  if (stats.isDirectory()) return "directory";
  return stats.isFIFO() || stats.isFile() || stats.isSocket() ? "piped" : "other";
}

/** Finds the command by its words and loads only the modules on the way. Switches may come before the command. */
async function findCommand(args: readonly string[], program: Program): Promise<Target> {
  let target: GroupTarget = { path: [], summary: program.summary, group: program, rest: args };
  for (;;) {
    const at = target.rest.findIndex((each) => !each.startsWith("-"));
    const unknown = unknownSwitch(target.rest.slice(0, at === -1 ? undefined : at), target.path);
    if (unknown !== undefined) {
      const { flag, known } = unknown;
      const hint = didYouMean(flag, known) ?? "Options of a command come after its name.";
      throw usageError(`unknown option "${flag}"`, hint);
    }
    if (at === -1) return target;
    const entry = findEntry(target, target.rest[at]!);
    const found = await entry.load();
    const path = [...target.path, entry.name];
    const next = { path, summary: entry.summary, rest: target.rest.toSpliced(at, 1) };
    if (!("subcommands" in found)) return { ...next, command: found };
    target = { ...next, group: found };
  }
}

/** The target whose help is shown: an action of a command, such as `mcp wrap`, if its name is the first word. Refuses
 *  extra words after `help COMMAND`, which would be ignored. */
function helpTarget(target: Target, isAsked: boolean): Target {
  if ("group" in target) return target;
  const at = target.rest.findIndex((each) => !each.startsWith("-"));
  const name = target.rest[at] ?? "";
  const { actions = {} } = target.command;
  const action = Object.hasOwn(actions, name) ? actions[name] : undefined;
  const path = action === undefined ? target.path : [...target.path, name];
  const rest = action === undefined ? target.rest : target.rest.toSpliced(at, 1);
  const extra = isAsked ? unknownSwitch(rest, path) : undefined;
  if (extra !== undefined) {
    const hint = `The help of a command is "plimsoll help ${path.join(" ")}".`;
    throw usageError(`unexpected argument "${extra.flag}"`, hint);
  }
  if (action === undefined) return target;
  const { summary, ...help } = action;
  return { path, summary, command: { ...target.command, arguments: [], ...help }, rest };
}

function findEntry({ path, group }: GroupTarget, word: string): CommandEntry {
  const entry = group.subcommands.find((each) => each.name === word);
  if (entry !== undefined) return entry;
  const names = group.subcommands.map((each) => each.name);
  throw usageError(
    `unknown command "${[...path, word].join(" ")}"`,
    didYouMean(word, path.length === 0 ? [...names, "help"] : names) ?? `Commands are ${names.join(", ")}.`,
  );
}

/** Longer lines are hard to read, however wide the terminal is. */
const MAX_WIDTH = 100;

function renderUsage(target: Target): string {
  const name = ["plimsoll", ...target.path].join(" ");
  if ("group" in target) return `${name} COMMAND [options]`;
  const words = (target.command.arguments ?? []).map(({ name, optional, repeated }) => {
    const word = repeated ? `${name}...` : name;
    return optional ? `[${word}]` : `<${word}>`;
  });
  return [name, "[options]", ...words].join(" ");
}

type Row = readonly [term: string, meaning: string];

/** Renders arguments, options and commands with one width of the left column. */
function renderLists(target: Target, { style, columns }: Pick<Output, "style" | "columns">): string[] {
  const lists: readonly (readonly [title: string, rows: readonly Row[]])[] =
    "command" in target
      ? [
          ["Arguments:", (target.command.arguments ?? []).map(({ name, summary }) => [name, summary] as const)],
          ["Options:", optionRows(withGlobalOptions(target.command))],
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
      [
        style.bold(title),
        ...rows.map(([term, meaning]) => {
          const indent = " ".repeat(width + 4);
          return `  ${term.padEnd(width)}  ${wrap(meaning, room).join(`\n${indent}`)}`;
        }),
      ].join("\n"),
    );
}

function optionRows(options: OptionSpecs): Row[] {
  return Object.entries(options).map(([name, spec]) => {
    const flags = listFlags(name, spec).reverse().join(", ");
    const term = spec.value === undefined ? flags : `${flags} <${spec.value}>`;
    return [term, spec.choices === undefined ? spec.summary : `${spec.summary}: ${spec.choices.join(", ")}`];
  });
}

function wrap(text: string, room: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= room) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
