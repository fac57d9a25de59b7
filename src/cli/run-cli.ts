/** One command line from start to end: find the command, parse, run, print. Never throws: the answer is the exit code. */
import { ContextError } from "../errors.ts";
import type { Environment } from "../workspace/index.ts";
import type { Call, CommandResult, StdinKind } from "./command.ts";
import { commandTable } from "./command-table.ts";
import { type CommandTarget, findCommand, type Program, refuseRest, type Target } from "./find-command.ts";
import { isSwitchedOn } from "./options.ts";
import { createOutput, type Output, type TextStream } from "./output.ts";
import { parseArguments } from "./parse-arguments.ts";
import { type ExitCode, exitCodes, reportError } from "./report-error.ts";
import { readVersion } from "./version.ts";

/** The process, or a stand-in for it. */
export interface World {
  readonly env: Environment;
  readonly stdin: AsyncIterable<Buffer>;
  readonly stdinKind: StdinKind;
  readonly stdout: TextStream;
  readonly stderr: TextStream;
  cwd(): string;
}

const program: Program = {
  summary: "Keeps everything an AI agent reads within a token budget.",
  subcommands: commandTable,
  examples: [
    { line: "plimsoll inject --dry-run --stats", meaning: "what AI tools would get here, and its weight" },
    { line: "plimsoll count .", meaning: "how many tokens this directory holds" },
    { line: "git diff | plimsoll count --model gpt-5", meaning: "what a model would see of a diff" },
    { line: "plimsoll help count", meaning: "all about one command" },
  ],
};

export async function runCli(
  args: readonly string[],
  world: World,
  commands: Program = program,
): Promise<number> {
  const has = (name: Parameters<typeof isSwitchedOn>[0]) => isSwitchedOn(name, args);
  const output = createOutput({ ...world, json: has("json"), quiet: has("quiet") });
  try {
    const first = args.findIndex((each) => !each.startsWith("-"));
    const helpAsked = args[first] === "help";
    const target = await findCommand(helpAsked ? args.toSpliced(first, 1) : args, commands);
    if ("group" in target && has("version")) return printVersion(output);
    if (helpAsked && "command" in target) refuseRest(target);
    if ("group" in target || helpAsked || has("help")) return await printHelp(target, output);
    return await runCommand(target, { ...world, commands: commands.subcommands }, output);
  } catch (error) {
    return reportError(error, output);
  }
}

function printVersion(output: Output): ExitCode {
  return printResult({ json: { version: readVersion() }, text: readVersion() }, output);
}

async function printHelp(target: Target, output: Output): Promise<ExitCode> {
  const { renderHelp } = await import("./help.ts");
  const help = renderHelp(target, output);
  return printResult({ json: { help }, text: help }, output);
}

async function runCommand(
  target: CommandTarget,
  world: World & Pick<Call, "commands">,
  output: Output,
): Promise<number> {
  const parsed = parseArguments(target);
  const { stdin, stdinKind, commands } = world;
  const env = parsed.options.trust === true ? { ...world.env, PLIMSOLL_TRUST: "1" } : world.env;
  const result = await target.command.run({
    ...parsed,
    cwd: currentDirectory(world),
    env,
    stdin,
    stdinKind,
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
  if (printed !== "") print(printed);
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
