/** The plain program that a tool is compared with: all of its output is read, and none of it kept. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { peakOf } from "./server-client.ts";

export interface PlainCommand {
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
}

export interface PlainRun {
  readonly milliseconds: number;
  readonly lines: number;
  readonly peakMegabytes: number | undefined;
}

/** A process that has ended tells nothing any more. */
const LOOK_MS = 3;

export async function runPlain({ program, args, cwd }: PlainCommand): Promise<PlainRun> {
  let lines = 0;
  let peakMegabytes: number | undefined;
  const start = performance.now();
  const child = spawn(program, args, { cwd, stdio: ["ignore", "pipe", "inherit"] });
  const look = setInterval(() => {
    peakMegabytes = peakOf(child.pid ?? 0) ?? peakMegabytes;
  }, LOOK_MS);
  child.stdout.on("data", (chunk: Buffer) => {
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines += 1;
  });
  const [code] = (await once(child, "close")) as [number | null];
  const milliseconds = performance.now() - start;
  clearInterval(look);
  if (code !== 0) throw new Error(`${program} ended with ${code}`);
  return { milliseconds, lines, peakMegabytes };
}

const onPath = "rg";

/** As the tool finds it: the one on PATH, else the one that came as an optional dependency. */
export async function findRipgrep(): Promise<string | undefined> {
  if (spawnSync(onPath, ["--version"]).status === 0) return onPath;
  try {
    return (await import("@vscode/ripgrep")).rgPath;
  } catch {
    return undefined;
  }
}
