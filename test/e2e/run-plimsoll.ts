import { type SpawnOptionsWithoutStdio, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";

export const mainFile: string = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const builtCli = new URL("../../dist/cli/run-cli.js", import.meta.url).href;

export interface Run {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface Sandbox {
  /** Where the command runs, and HOME beside it. */
  cwd: string;
  home: string;
  env: Record<string, string>;
  write(path: string, content: string | Buffer): void;
  /** Runs the built command. Standard input is closed unless given. */
  run(args: readonly string[], options?: RunOptions): Promise<Run>;
  /** The same without a process of its own, which takes ten times as long as most commands: for what a command says and does. How it
   *  starts, is fed, ends and is killed is seen by `run`, which every file has for the main way of its command. */
  call(args: readonly string[], options?: CallOptions): Promise<Run>;
  remove(): void;
}

export interface CallOptions {
  input?: string | Buffer;
  env?: Record<string, string>;
  cwd?: string;
}

export interface RunOptions extends CallOptions {
  /** Words before the command, such as `setpriv …`. */
  wrapper?: readonly string[];
}

/** A directory and a HOME of its own, so that nothing of the machine's configuration is seen. */
export function createSandbox(): Sandbox {
  const root = mkdtempSync(join(tmpdir(), "plimsoll-e2e-"));
  const [cwd, home] = [join(root, "project"), join(root, "home")];
  mkdirSync(cwd);
  mkdirSync(home);
  // The search for a project's root ends at the temporary directory, so nothing above the sandbox is found.
  const env = { PATH: process.env.PATH ?? "", HOME: home, TMPDIR: tmpdir() };
  return {
    cwd,
    home,
    env,
    write(path, content) {
      mkdirSync(dirname(join(cwd, path)), { recursive: true });
      writeFileSync(join(cwd, path), content);
    },
    run(args, options = {}) {
      const [command = "", ...rest] = [...(options.wrapper ?? []), process.execPath, mainFile, ...args];
      return runProcess([command, ...rest], {
        cwd: options.cwd ?? cwd,
        env: { ...env, ...options.env },
        input: options.input,
      });
    },
    call: (args, options = {}) => callCommand(args, { cwd, ...options, env: { ...env, ...options.env } }),
    // A process that is about to end may still write a file.
    remove: () => rmSync(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }),
  };
}

async function callCommand(
  args: readonly string[],
  { input, env, cwd }: CallOptions & { cwd: string; env: Record<string, string> },
): Promise<Run> {
  const { runCli } = (await import(/* @vite-ignore */ builtCli)) as typeof import("../../src/cli/run-cli.ts");
  const run: Run = { code: null, stdout: "", stderr: "" };
  const writeTo = (stream: "stdout" | "stderr") => ({
    write(text: string) {
      run[stream] += text;
    },
  });
  const giveBackSignals = keepSignals();
  const code = await runCli(args, {
    env,
    cwd: () => cwd,
    stdin: Readable.from(input === undefined ? [] : [Buffer.from(input)]),
    stdinKind: input === undefined ? "other" : "piped",
    stdout: writeTo("stdout"),
    stderr: writeTo("stderr"),
  }).finally(giveBackSignals);
  return { ...run, code };
}

/** A command that can be interrupted handles the signals of its process until it ends. This process goes on. */
function keepSignals(): () => void {
  const kept = (["SIGINT", "SIGTERM", "SIGHUP"] as const).map((name) => [name, process.listeners(name)] as const);
  return () => {
    for (const [name, listeners] of kept) {
      process.removeAllListeners(name);
      for (const listener of listeners) process.on(name, listener);
    }
  };
}

export function runProcess(
  [command = "", ...args]: readonly string[],
  { input, ...options }: SpawnOptionsWithoutStdio & { input?: string | Buffer | undefined },
): Promise<Run> {
  const child = spawn(command, args, {
    ...options,
    stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  });
  const run: Run = { code: null, stdout: "", stderr: "" };
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    run.stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    run.stderr += text;
  });
  child.stdin?.on("error", () => {}).end(input);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ ...run, code }));
  });
}
