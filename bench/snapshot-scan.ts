/** Measures a snapshot of a repository of many files beside what git alone needs to list them. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCounter } from "../src/core/tokens/index.ts";
import { scanProject } from "../src/host/index.ts";
import { renderSnapshot } from "../src/plans/compose/index.ts";
import { type Measurement, measurementOf, timeInTurns } from "./tools/measurement.ts";
import { runPlain } from "./tools/plain-command.ts";
import { createRepository, type Repository } from "./tools/repository.ts";

export interface SnapshotScanOptions {
  readonly files?: number | undefined;
  readonly rounds?: number | undefined;
}

/** What scanning and rendering may take at most, with git and without. */
export const mostSnapshotMs = 2_000;

/** The first two rows are git by itself, the others a whole snapshot: with git, and by a walk where there is none. */
export async function measureSnapshotScan(options: SnapshotScanOptions = {}): Promise<Measurement[]> {
  const { files = 100_000, rounds = 5 } = options;
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-bench-")));
  try {
    return await measure(await createRepository(join(folder, "repository"), files), rounds);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure({ root, files }: Repository, rounds: number): Promise<Measurement[]> {
  const tracked = { program: "git", args: ["ls-files"], cwd: root };
  const flags = ["--cached", "--others", "--deleted", "--exclude-standard"];
  const all = { ...tracked, args: ["ls-files", ...flags] };
  const counter = await createCounter("bytes/4");
  const snapshot = async (env: Readonly<Record<string, string | undefined>>): Promise<number> => {
    const start = performance.now();
    const scan = await scanProject(root, { env });
    const { tokens } = renderSnapshot(scan, { counter });
    const milliseconds = performance.now() - start;
    if (scan.paths.length !== files) throw new Error(`the scan has ${scan.paths.length} files, not ${files}`);
    if (tokens === 0) throw new Error("the snapshot is empty");
    return milliseconds;
  };
  const [trackedTimes, allTimes, gitTimes, walkTimes] = (await timeInTurns(rounds, [
    async () => (await runPlain(tracked)).milliseconds,
    async () => (await runPlain(all)).milliseconds,
    () => snapshot(process.env),
    () => snapshot({}),
  ])) as [number[], number[], number[], number[]];
  return [
    measurementOf("git ls-files", trackedTimes, { items: files }),
    measurementOf("git ls-files, as the snapshot asks", allTimes, { items: files }),
    measurementOf("snapshot", gitTimes, { plain: allTimes, items: files }),
    measurementOf("snapshot without git", walkTimes, { plain: allTimes, items: files }),
  ];
}
