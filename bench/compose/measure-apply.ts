/** What `nebula apply` adds to an agent: many phases with an agent that does nothing, beside the same command spawned as often. */
import { spawn } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Measurement, measurementOf, timeInTurns } from "../tools/measurement.ts";

export interface ApplyBench {
  /** The built command. */
  readonly main: string;
  /** An empty folder. */
  readonly folder: string;
  readonly phases: number;
  readonly rounds: number;
}

/** What a phase may cost at most beside its agent. */
export const mostPhaseMs = 15;

const agent = "true";
const flags = ["--agent-command", agent, "--max-workers", "1", "-q"];

/** Phases in chains of three, so that there are waves and prior work; one worker, as plain spawning has. What a run costs however few
 *  phases it has is told for itself, and is nevertheless in the last row: the whole time, by phases. */
export async function measureApply(bench: ApplyBench): Promise<Measurement[]> {
  const { folder, phases, rounds } = bench;
  const [one, all] = [join(folder, "one"), join(folder, "all")];
  writeNebula(one, 1);
  writeNebula(all, phases);
  const [plain, first, whole] = (await timeInTurns(rounds, [
    () => spawnOften(bench),
    () => apply(one, bench),
    () => apply(all, bench),
  ])) as [number[], number[], number[]];
  const each = plain.map((time) => time / phases);
  const perPhase = whole.map((time) => time / phases);
  const further = whole.map((time, round) => (time - first[round]!) / (phases - 1));
  return [
    measurementOf("an agent that does nothing, spawned", each, { items: phases }),
    measurementOf("a run of one phase with it", first, { items: 1 }),
    measurementOf("each further phase", further, { plain: each, items: phases - 1 }),
    measurementOf("each phase, all that a run costs included", perPhase, { plain: each, items: phases }),
  ];
}

async function spawnOften({ folder, phases }: ApplyBench): Promise<number> {
  const start = performance.now();
  for (let count = 0; count < phases; count++) await timed("/bin/sh", ["-c", agent], placeIn(folder));
  return performance.now() - start;
}

/** Each a first run: what one leaves behind is not the next one's to clear away. */
async function apply(directory: string, { main, folder }: ApplyBench): Promise<number> {
  const place = placeIn(folder);
  rmSync(place.env.HOME!, { recursive: true, force: true });
  return timed(process.execPath, [main, "nebula", "apply", directory, ...flags], place);
}

/** A home of its own: nobody's configuration and nobody's store takes part. */
function placeIn(folder: string): Place {
  return { cwd: folder, env: { PATH: process.env.PATH ?? "", HOME: join(folder, "home") } };
}

function writeNebula(directory: string, phases: number): void {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "nebula.toml"), '[nebula]\nname = "bench"\n');
  for (let number = 0; number < phases; number++) {
    const id = idOf(number);
    const dependsOn = number % 3 === 0 ? [] : [idOf(number - 1)];
    const front = `id = "${id}"\ntitle = "Part ${number}"\ndepends_on = ${JSON.stringify(dependsOn)}\nscope = ["src/${id}/**"]`;
    writeFileSync(join(directory, `${id}.md`), `+++\n${front}\n+++\nMake part ${number}.\n`);
  }
}

function idOf(number: number): string {
  return `part-${String(number).padStart(4, "0")}`;
}

interface Place {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** One that fails is no measurement. */
function timed(program: string, args: readonly string[], place: Place): Promise<number> {
  const start = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { ...place, stdio: "ignore" });
    child.on("error", reject);
    child.on("close", (code) => {
      if (code === 0) resolve(performance.now() - start);
      else reject(new Error(`${program} ended with ${code}`));
    });
  });
}
