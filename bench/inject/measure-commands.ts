/** Times child processes in turns, a round after the other, so that what slows the machine down slows all of them down. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { medianOf } from "../tokens/processor-time.ts";
import type { BenchCommand } from "./commands.ts";

export interface CommandRow {
  readonly name: string;
  /** Median by the clock. */
  readonly milliseconds: number;
  /** Median of the rounds' own ratios to the first command, by the clock. */
  readonly ratio: number;
  /** Mean of processor time, user and system; absent where the system does not tell. */
  readonly processorMs?: number;
  readonly processorRatio?: number;
}

export interface MeasureOptions {
  readonly rounds: number;
  readonly env: NodeJS.ProcessEnv;
}

/** The first command is the one that all are compared with. */
export function measureCommands(commands: readonly BenchCommand[], { rounds, env }: MeasureOptions): CommandRow[] {
  // The first round fills the page cache and is not counted.
  for (const command of commands) timeOf(command, env);
  const times = Array.from({ length: rounds }, () => commands.map((command) => timeOf(command, env)));
  const wall = (at: number) => times.map((round) => round[at]!.milliseconds);
  const processor = (at: number) =>
    times.reduce((sum, round) => sum + (round[at]!.processorMs ?? Number.NaN), 0) / rounds;
  return commands.map(({ name }, at) => {
    const row = {
      name,
      milliseconds: medianOf(wall(at)),
      ratio: medianOf(times.map((round) => round[at]!.milliseconds / round[0]!.milliseconds)),
    };
    const processorMs = processor(at);
    if (Number.isNaN(processorMs)) return row;
    return { ...row, processorMs, processorRatio: processorMs / processor(0) };
  });
}

interface Time {
  readonly milliseconds: number;
  readonly processorMs: number | undefined;
}

function timeOf({ name, node, args, cwd, prepare, leaves }: BenchCommand, env: NodeJS.ProcessEnv): Time {
  prepare?.();
  const before = childrenTime();
  const start = performance.now();
  const { status, stderr } = spawnSync(node, args, { cwd, env, encoding: "utf8" });
  const milliseconds = performance.now() - start;
  const after = childrenTime();
  if (status !== 0) throw new Error(`${name} ended with ${status}: ${stderr.trim().split("\n")[0]}`);
  if (leaves !== undefined && !existsSync(leaves)) throw new Error(`${name} did not write ${leaves}`);
  return {
    milliseconds,
    processorMs: before === undefined || after === undefined ? undefined : after - before,
  };
}

/** Linux counts in hundredths of a second. */
const TICK_MS = 10;

/** Processor time of all children that have ended, in milliseconds; Linux alone tells it. */
function childrenTime(): number | undefined {
  if (process.platform !== "linux") return undefined;
  // The name, in brackets, may hold blanks; fields are counted behind it.
  const fields = readFileSync("/proc/self/stat", "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[13]) + Number(fields[14])) * TICK_MS;
}
