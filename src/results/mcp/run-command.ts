/** The tool `run_command`, which is served only if a person allowed it at the start of the server. Its output passes an
 *  intake: failures and sums of test runs are kept, repeated lines are folded, and recall returns the rest. */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, fstatSync, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Intake } from "../../conversation/intake/index.ts";
import { formatNumber, shorten } from "../../core/text/index.ts";
import { type Environment, findProgram } from "../../host/index.ts";
import { createInputSchema, readArguments, type ToolFailure, type ToolParameters } from "../session/index.ts";
import type { PageTool } from "./page-tools.ts";

/** What the model may run. */
export interface CommandRules {
  /** The names of programs as a command writes them, or all. */
  readonly programs: readonly string[] | "all";
  /** Whether a shell runs the command. No argument of a call can ask for one. */
  readonly allowsShell: boolean;
}

/** Where and how a session runs commands. */
export interface CommandPlace {
  readonly root: string;
  readonly env: Environment;
  /** Shortens outputs. */
  readonly intake: Intake;
}

const name = "run_command";

const parameters = {
  command: { type: "string", description: "As in a terminal, such as npm test.", required: true },
  timeout: { type: "integer", minimum: 1, description: "Seconds, 120 unless set, 1800 at most." },
} as const satisfies ToolParameters;

const [usualSeconds, maxSeconds] = [120, 1_800];

export function createRunCommand(rules: CommandRules): PageTool {
  return {
    name,
    annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
    description: "Run a program in the project. A long output keeps failures and sums; recall returns the rest.",
    inputSchema: createInputSchema(parameters),
    async run(session, args, { signal, commands } = {}) {
      const call = { tool: name, args };
      const read = readArguments(parameters, args);
      if ("failure" in read) return session.refuse(read.failure, call);
      const { command, timeout = usualSeconds } = read.values;
      const words = wordsToRun(command, rules);
      if (!Array.isArray(words)) return session.refuse(words as ToolFailure, call);
      if (commands === undefined)
        return session.refuse({ code: "unavailable", message: "There is no directory to run the command in." }, call);
      const timeoutMs = Math.min(timeout, maxSeconds) * 1_000;
      const { output, end } = await runProgram(words, { ...commands, timeoutMs, signal });
      const text = `${output}${output === "" || output.endsWith("\n") ? "" : "\n"}[${end}]`;
      const admitted = await commands.intake.admit({ tool: name, input: { command }, text });
      const items = admitted.text.split("\n");
      return session.deliver({ fields: {}, itemsName: "lines", items, offset: 0, total: items.length }, call);
    },
  };
}

/** Returns the program and its arguments, or why the command does not run. */
function wordsToRun(command: string, { programs, allowsShell }: CommandRules): readonly string[] | ToolFailure {
  if (allowsShell) return ["/bin/sh", "-c", command];
  const words = splitWords(command);
  if (words === undefined) {
    return {
      code: "not_allowed",
      message: "The command needs a shell, and this server runs programs without one.",
      hint: "Run one program with its arguments: no pipes, redirections, variables, && or ;.",
    };
  }
  const [program = ""] = words;
  if (program !== "" && (programs === "all" || programs.includes(program))) return words;
  return {
    code: "not_allowed",
    message: `The program ${JSON.stringify(shorten(program, 60))} is not allowed here.`,
    hint: programs === "all" ? "Name a program." : `Allowed: ${programs.join(", ")}.`,
  };
}

/** Splits a command as a shell would. Returns undefined if it has anything that only a shell understands. */
function splitWords(command: string): string[] | undefined {
  const words: string[] = [];
  const token = /\s+|'([^']*)'|"((?:[^"\\$`]|\\[\s\S])*)"|\\([\s\S])|([^\s'"\\|&;<>()$`*?[\]{}~#!]+)/y;
  let word: string | undefined;
  while (token.lastIndex < command.length) {
    const found = token.exec(command);
    if (found === null) return undefined;
    const [whole, single, double, escaped, plain] = found;
    const part = single ?? double?.replace(/\\(["\\$`])/g, "$1") ?? escaped ?? plain;
    if (part === undefined && whole.trim() === "") {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + (part ?? "");
  }
  return word === undefined ? words : [...words, word];
}

/** Above it the program is ended: nobody reads so much, and it would fill the memory. */
const maxOutputBytes = 20_000_000;

/** Runs a program until it ends, and then ends its children. Output and errors go to one file, in their order: a program
 *  that exits before a pipe is read would lose what it wrote last. */
export async function runProgram(
  [name = "", ...args]: readonly string[],
  options: Omit<CommandPlace, "intake"> & {
    readonly timeoutMs: number;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<{ readonly output: string; readonly end: string }> {
  const { root, env, timeoutMs, signal } = options;
  // The system would also look for a name in the root, if PATH has such an entry.
  const program = /[\\/]/.test(name) ? name : await findProgram(name, env);
  if (program === undefined) return { output: "", end: `did not start: ${name} is not on PATH` };
  const folder = mkdtempSync(join(tmpdir(), "plimsoll-run-"));
  const file = openSync(join(folder, "output"), "w+", 0o600);
  const child = spawn(program, args, {
    cwd: root,
    env,
    stdio: ["ignore", file, file],
    windowsHide: true,
    // Its own group, which can be ended as a whole.
    detached: process.platform !== "win32",
  });
  let why = "";
  const stop = (reason: string): void => {
    why ||= reason;
    endGroup(child);
  };
  const cancel = () => stop("cancelled");
  const timer = setTimeout(() => stop(`ended after ${timeoutMs / 1_000} s`), timeoutMs);
  const watch = setInterval(() => {
    if (fstatSync(file).size > maxOutputBytes) stop(`ended after ${formatNumber(maxOutputBytes)} bytes of output`);
  }, 100);
  signal?.addEventListener("abort", cancel, { once: true });
  if (signal?.aborted) cancel();
  try {
    const end = await new Promise<string>((resolve) => {
      child.on("error", ({ message }) => resolve(`did not start: ${message}`));
      child.on("exit", (code, name) => resolve(code === null ? `ended by ${name}` : `exit code ${code}`));
    });
    endGroup(child);
    const bytes = Buffer.alloc(Math.min(fstatSync(file).size, maxOutputBytes));
    return { output: bytes.toString("utf8", 0, readSync(file, bytes, 0, bytes.length, 0)), end: why || end };
  } finally {
    clearTimeout(timer);
    clearInterval(watch);
    signal?.removeEventListener("abort", cancel);
    closeSync(file);
    rmSync(folder, { recursive: true, force: true });
  }
}

function endGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    if (process.platform === "win32") child.kill("SIGKILL");
    else process.kill(-child.pid, "SIGKILL");
  } catch {
    // The group is empty.
  }
}
