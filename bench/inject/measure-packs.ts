/** What many packs cost: loading, rendering and the whole command, in processor time, and the memory of the command. */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { medianOf } from "../tokens/processor-time.ts";
import { type AdapterSet, adapterSets, writeManyPacks } from "./many-packs.ts";

export interface PacksRow {
  readonly adapters: AdapterSet;
  readonly loadSeconds: number;
  readonly renderSeconds: number;
  /** `inject` that writes every file. */
  readonly commandSeconds: number;
  /** `inject` that finds every file current. */
  readonly againSeconds: number;
  readonly peakMegabytes: number;
  /** What was rendered, all files together. */
  readonly megabytes: number;
}

const RUNS = 3;

export function measurePacks(folder: string, { main, env }: MeasurePacksOptions): PacksRow[] {
  return adapterSets.map((set) => {
    const content = join(folder, `many-${set}`);
    writeManyPacks(content, set);
    const runs = Array.from({ length: RUNS }, () => measureRun(content, { main, env }));
    rmSync(content, { recursive: true });
    const median = (of: (run: Run) => number) => medianOf(runs.map(of));
    return {
      adapters: set,
      loadSeconds: median((run) => run.loadSeconds),
      renderSeconds: median((run) => run.renderSeconds),
      commandSeconds: median((run) => run.commandSeconds),
      againSeconds: median((run) => run.againSeconds),
      peakMegabytes: median((run) => run.peakMegabytes),
      megabytes: median((run) => run.megabytes),
    };
  });
}

interface MeasurePacksOptions {
  readonly main: string;
  readonly env: NodeJS.ProcessEnv;
}

type Run = Omit<PacksRow, "adapters">;

function measureRun(content: string, { main, env }: MeasurePacksOptions): Run {
  const root = `${content}-project`;
  rmSync(root, { recursive: true, force: true });
  for (const name of ["objects", "refs"]) mkdirSync(join(root, ".git", name), { recursive: true });
  writeFileSync(join(root, ".git/HEAD"), "ref: refs/heads/main\n");
  const script = fileURLToPath(new URL("../render-packs.js", import.meta.url));
  // The modules in build/ look for the embedded content beside themselves.
  copyFileSync(
    new URL("../../../dist/content.json", import.meta.url),
    new URL("../../src/content.json", import.meta.url),
  );
  const parts = JSON.parse(
    execFileSync(process.execPath, [script, content, root], { cwd: root, env, encoding: "utf8" }),
  ) as { loadSeconds: number; renderSeconds: number; bytes: number };
  const args = [main, "inject", "--content", content, "--all", "--quiet"];
  const first = usageOf(args, { cwd: root, env });
  const again = usageOf(args, { cwd: root, env });
  rmSync(root, { recursive: true });
  return {
    loadSeconds: parts.loadSeconds,
    renderSeconds: parts.renderSeconds,
    commandSeconds: first.seconds,
    againSeconds: again.seconds,
    peakMegabytes: Math.max(first.megabytes, again.megabytes),
    megabytes: parts.bytes / 1e6,
  };
}

/** Tells what a process used when it ends. */
const hook = `process.on("exit", () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  const usage = { seconds: (userCPUTime + systemCPUTime) / 1e6, megabytes: (maxRSS * 1024) / 1e6 };
  require("node:fs").writeFileSync(process.env.BENCH_USAGE, JSON.stringify(usage));
});
`;

function usageOf(
  args: readonly string[],
  { cwd, env }: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): { seconds: number; megabytes: number } {
  const [hookPath, usagePath] = [`${cwd}-hook.cjs`, `${cwd}-usage.json`];
  writeFileSync(hookPath, hook);
  execFileSync(process.execPath, ["--require", hookPath, ...args], {
    cwd,
    env: { ...env, BENCH_USAGE: usagePath },
    stdio: ["ignore", "ignore", "inherit"],
  });
  return JSON.parse(readFileSync(usagePath, "utf8"));
}
