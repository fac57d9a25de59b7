import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import type { Environment } from "../../workspace/index.ts";

/** Programs that take what they read into the clipboard, in the order of trying. */
const programs: readonly (readonly [command: string, ...args: string[]])[] = [
  ["pbcopy"],
  ["wl-copy"],
  ["xclip", "-selection", "clipboard"],
  ["xsel", "--clipboard", "--input"],
  ["clip.exe"],
];

/** A program without a display may wait for ever. */
const TIMEOUT_MS = 5_000;

/** Copies a text; the name of the program that took it, or nothing when none is there or none works. */
export async function copyToClipboard(text: string, env: Environment): Promise<string | undefined> {
  for (const [command, ...args] of programs) {
    if ((await findCommand(command, env)) !== undefined && (await feed(command, args, { text, env })))
      return command;
  }
  return undefined;
}

/** The path of a command as the shell would find it. */
export async function findCommand(command: string, env: Environment): Promise<string | undefined> {
  for (const folder of (env.PATH ?? "").split(delimiter)) {
    const path = join(folder || ".", command);
    const runs = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (runs) return path;
  }
  return undefined;
}

async function feed(
  command: string,
  args: readonly string[],
  { text, env }: { text: string; env: Environment },
): Promise<boolean> {
  // Loaded here alone: most runs write files only.
  const { spawn } = await import("node:child_process");
  return new Promise((done) => {
    const child = spawn(command, args, { env, stdio: ["pipe", "ignore", "ignore"], timeout: TIMEOUT_MS });
    child.on("error", () => done(false));
    child.on("close", (code) => done(code === 0));
    // The program may end before it has read everything.
    child.stdin.on("error", () => undefined);
    child.stdin.end(text);
  });
}
