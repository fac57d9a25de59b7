/** Measures what composing, snapshots and `nebula apply` cost:
 *  `npm run bench:compose [-- --phases N] [--many N] [--files N] [--megabytes N] [--rounds N] [--json]`.
 *  Works in temporary folders. Results go to stdout, progress to stderr. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { measureApply, measureManyPhases } from "./compose/measure-apply.ts";
import { goalsOf, type Report, renderReport } from "./compose/render-report.ts";
import { measureComposeLayers } from "./compose-layers.ts";
import { measureSnapshotScan } from "./snapshot-scan.ts";

const sizes = readArguments();
const report = await measure();
process.stdout.write(sizes.json ? `${JSON.stringify(report, null, 2)}\n` : renderReport(report));

interface Sizes {
  readonly phases: number;
  /** The phases of the run with several workers. */
  readonly many: number;
  readonly files: number;
  readonly megabytes: number;
  readonly rounds: number;
  readonly json: boolean;
}

function readArguments(): Sizes {
  try {
    const { values } = parseArgs({
      options: {
        phases: { type: "string", default: "200" },
        many: { type: "string", default: "1000" },
        files: { type: "string", default: "100000" },
        megabytes: { type: "string", default: "10" },
        rounds: { type: "string", default: "5" },
        json: { type: "boolean", default: false },
      },
    });
    const whole = (name: Exclude<keyof typeof values, "json">, least = 1): number => {
      const value = Number(values[name]);
      if (Number.isInteger(value) && value >= least) return value;
      throw new Error(`--${name} takes a whole number from ${least} on`);
    };
    const [phases, many, files, megabytes, rounds] = [
      whole("phases", 2),
      whole("many"),
      whole("files"),
      whole("megabytes"),
      whole("rounds"),
    ];
    return { phases, many, files, megabytes, rounds, json: values.json };
  } catch (error) {
    const flags = "[--phases N] [--many N] [--files N] [--megabytes N] [--rounds N] [--json]";
    console.error(`${(error as Error).message}\nusage: npm run bench:compose [-- ${flags}]`);
    process.exit(2);
  }
}

async function measure(): Promise<Report> {
  const { phases, files, megabytes, rounds } = sizes;
  progress(`composing layers of ${megabytes} MB`);
  const layers = await measureComposeLayers({ megabytes, rounds });
  progress(`snapshot of ${files} files`);
  const snapshot = await measureSnapshotScan({ files, rounds });
  progress(`nebula apply, ${phases} phases`);
  const main = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
  const apply = await inFolder((folder) => measureApply({ main, folder, phases, rounds }));
  progress(`nebula apply, ${sizes.many} phases with several workers`);
  const many = await inFolder((folder) => measureManyPhases({ main, folder, phases: sizes.many }));
  const parts = { layers, snapshot, apply, many };
  return { node: process.versions.node, rounds, load: loadavg()[0]!, ...parts, goals: goalsOf(parts) };
}

async function inFolder<Result>(work: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-bench-")));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function progress(step: string): void {
  process.stderr.write(`${step} …\n`);
}
