/** What `nebula apply` adds to an agent: many phases with an agent that writes one line, beside the same command spawned as often. */
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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

/** What a run of many phases may cost beside its agents, by its phases: 75 s for 1,000. */
export const mostManyPhaseMs = 75;

const manyWorkers = 4;

/** Changes a file in its scope, without which a phase does not complete, and answers. It starts no other program. */
const agent = 'echo $$ >>"src/$PLIMSOLL_PHASE/made"; echo Done.';

/** Phases in chains of three, so that there are waves and prior work; one worker, as plain spawning has. What a run costs however few
 *  phases it has is told for itself, and is nevertheless in the last row: the whole time, by phases. */
export async function measureApply(bench: ApplyBench): Promise<Measurement[]> {
  const { folder, phases, rounds } = bench;
  const [one, all] = [join(folder, "one"), join(folder, "all")];
  writeNebula(one, 1);
  writeNebula(all, phases);
  const [plain, first, whole] = (await timeInTurns(rounds, [
    () => spawnOften(bench, 1),
    () => apply(one, bench, 1),
    () => apply(all, bench, 1),
  ])) as [number[], number[], number[]];
  const each = plain.map((time) => time / phases);
  const perPhase = whole.map((time) => time / phases);
  const further = whole.map((time, round) => (time - first[round]!) / (phases - 1));
  return [
    measurementOf("an agent that writes one line, spawned", each, { items: phases }),
    measurementOf("a run of one phase with it", first, { items: 1 }),
    measurementOf("each further phase", further, { plain: each, items: phases - 1 }),
    measurementOf("each phase, all that a run costs included", perPhase, { plain: each, items: phases }),
  ];
}

/** Many phases with several workers, after the same agents alone with as many at a time. Once, because it takes minutes. */
export async function measureManyPhases(bench: Omit<ApplyBench, "rounds">): Promise<Measurement[]> {
  const many = join(bench.folder, "many");
  writeNebula(many, bench.phases);
  const start = childrenMs();
  const alone = await spawnOften(bench, manyWorkers);
  const middle = childrenMs();
  const applied = await apply(many, bench, manyWorkers);
  const [plain, whole] = [[middle - start], [childrenMs() - middle]];
  const items = bench.phases;
  return [
    measurementOf(`agents alone, ${manyWorkers} at a time`, [alone], { items }),
    measurementOf(`a run of many phases, ${manyWorkers} workers`, [applied], { plain: [alone], items }),
    ...(Number.isNaN(start)
      ? []
      : [
          measurementOf("agents alone, processor time", plain, { items }),
          measurementOf("a run of many phases, processor time", whole, { plain, items }),
        ]),
  ];
}

/** The processor time of all children that have ended, or NaN where the system does not say it. */
function childrenMs(): number {
  try {
    // After the name: cutime and cstime are the fields 16 and 17 of the line, in hundredths of a second.
    const fields = readFileSync("/proc/self/stat", "utf8").split(") ").at(-1)!.split(" ");
    return (Number(fields[13]) + Number(fields[14])) * 10;
  } catch {
    return Number.NaN;
  }
}

async function spawnOften({ folder, phases }: Pick<ApplyBench, "folder" | "phases">, workers: number): Promise<number> {
  const { cwd, env } = placeIn(folder);
  const start = performance.now();
  let next = 0;
  const work = async (): Promise<void> => {
    for (let number = next++; number < phases; number = next++) {
      await timed("/bin/sh", ["-c", agent], { cwd, env: { ...env, PLIMSOLL_PHASE: idOf(number) } });
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
  return performance.now() - start;
}

/** Each a first run: what one leaves behind is not the next one's to clear away. */
async function apply(
  directory: string,
  { main, folder }: Pick<ApplyBench, "main" | "folder">,
  workers: number,
): Promise<number> {
  const place = placeIn(folder);
  rmSync(place.env.HOME!, { recursive: true, force: true });
  const flags = ["--agent-command", agent, "--max-workers", String(workers), "-q"];
  return timed(process.execPath, [main, "nebula", "apply", directory, ...flags], place);
}

/** A home of its own: nobody's configuration and nobody's store takes part. */
function placeIn(folder: string): Place {
  return { cwd: folder, env: { PATH: process.env.PATH ?? "", HOME: join(folder, "home") } };
}

/** Writes a plan, and beside it the folders that its agents write in. */
function writeNebula(directory: string, phases: number): void {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "nebula.toml"), '[nebula]\nname = "bench"\n');
  for (let number = 0; number < phases; number++) {
    const id = idOf(number);
    mkdirSync(join(directory, "..", "src", id), { recursive: true });
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

/** Rejects if the program fails: then there is no measurement. */
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
