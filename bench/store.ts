/** Measures SQLite and PostgreSQL side by side: `npm run bench:store [-- --updates N] [--sessions N] [--records N] [--json]`. Starts
 *  a PostgreSQL of its own with its default durability, on the same disk as the file. Results go to stdout, progress to stderr.
 *  Every write of SQLite waits for the disk, so the default numbers take about 370,000 times what one write to the disk takes. */
import { spawn } from "node:child_process";
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type MaintainedStore, openStore } from "../src/store/index.ts";
import { noPostgres, startPostgres } from "../test/postgres-server.ts";

interface Settings {
  readonly updates: number;
  readonly sessions: number;
  readonly records: number;
  readonly json: boolean;
}

/** One job of one store. */
interface Measured {
  readonly operations: number;
  readonly perSecond: number;
  /** Milliseconds of one operation. */
  readonly p50: number;
  readonly p99: number;
}

const processes = 16;
const appendsEach = 30;
const [, , worker, ...workerArguments] = process.argv;
if (worker === "--worker") await work(workerArguments);
else await measureAll(readArguments());

function readArguments(): Settings {
  const options = {
    updates: { type: "string", default: "2000" },
    sessions: { type: "string", default: "10000" },
    records: { type: "string", default: "1000000" },
    json: { type: "boolean", default: false },
  } as const;
  const { values } = parseArgs({ options });
  const { updates, sessions, records } = values;
  return { updates: Number(updates), sessions: Number(sessions), records: Number(records), json: values.json };
}

async function measureAll(settings: Settings): Promise<void> {
  if (noPostgres !== undefined) throw new Error(noPostgres);
  const folder = mkdtempSync(join(tmpdir(), "plimsoll-bench-"));
  const server = await startPostgres({ durable: true });
  try {
    const places = { SQLite: join(folder, "state.db"), PostgreSQL: await server.newDatabase() };
    const syncMs = measureSync(folder);
    console.error(`one write to the disk: ${syncMs.toFixed(2)} ms`);
    const rows: { job: string; store: string; measured: Measured }[] = [];
    for (const [store, place] of Object.entries(places)) {
      const note = (job: string, measured: Measured): void => {
        rows.push({ job, store, measured });
        console.error(`${store}: ${job}: ${measured.perSecond.toFixed(0)}/s`);
      };
      const { updates, sessions } = settings;
      note(`${processes} processes × ${updates} updates of one record`, await together(place, ["one", updates]));
      note(`${processes} processes × ${updates} updates of own records`, await together(place, ["own", updates]));
      const each = Math.ceil(sessions / processes);
      const job = `${each * processes} sessions × ${appendsEach} appends, ${processes} processes`;
      note(job, await together(place, ["sessions", each]));
      for (let records = 1_000; records <= settings.records; records *= 10) {
        note(`update among ${records} records`, await amongRecords(place, records));
      }
    }
    const facts = { cores: cpus().length, load: loadavg()[0]!, syncMs, settings, rows };
    process.stdout.write(settings.json ? `${JSON.stringify(facts, null, 2)}\n` : render(facts));
  } finally {
    await server.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns the milliseconds that a small write takes until it is on the disk, the median of some. */
function measureSync(folder: string): number {
  const file = openSync(join(folder, "sync"), "w");
  const times = Array.from({ length: 101 }, () => {
    const start = performance.now();
    writeSync(file, "x".repeat(4_096));
    fdatasyncSync(file);
    return performance.now() - start;
  });
  closeSync(file);
  return summarise(times, 1).p50;
}

/** Runs a job in several processes at once. */
async function together(place: string, [job, count]: readonly [string, number]): Promise<Measured> {
  const self = fileURLToPath(import.meta.url);
  const outputs = await Promise.all(
    Array.from({ length: processes }, (_, index) => run([self, "--worker", place, job, String(count), String(index)])),
  );
  const parts = outputs.map((text) => JSON.parse(text) as WorkerReport);
  // Without the starts of the processes.
  const started = Math.min(...parts.map(({ start }) => start));
  const ended = Math.max(...parts.map(({ end }) => end));
  return summarise(
    parts.flatMap(({ times }) => times),
    (ended - started) / 1_000,
  );
}

interface WorkerReport {
  /** Milliseconds since 1970. */
  readonly start: number;
  readonly end: number;
  readonly times: number[];
}

async function run(args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  const code = await new Promise((resolve) => child.on("close", resolve));
  if (code !== 0) throw new Error(`a worker ended with ${code}`);
  return text;
}

/** Prints the milliseconds of each operation, as JSON. */
async function work([place = "", job = "", count = "0", index = "0"]: readonly string[]): Promise<void> {
  const store = await openStore({ place, waitMs: 600_000 });
  const started = Date.now();
  const times: number[] = [];
  const measure = async (operation: () => Promise<unknown>): Promise<void> => {
    const start = performance.now();
    await operation();
    times.push(performance.now() - start);
  };
  const add = (value: string | undefined): string => String(Number(value ?? 0) + 1);
  const entry = JSON.stringify({ text: "x".repeat(400) });
  for (let step = 0; step < Number(count); step += 1) {
    if (job === "one") await measure(() => store.update("bench", "counter", add));
    else if (job === "own") await measure(() => store.update("bench-own", `${index}/${step % 100}`, add));
    else {
      for (let call = 0; call < appendsEach; call += 1) {
        await measure(() => store.append(`session/${index}-${step}`, [entry]));
      }
    }
  }
  const end = Date.now();
  await store.close();
  const rounded = times.map((time) => Math.round(time * 1_000) / 1_000);
  process.stdout.write(JSON.stringify({ start: started, end, times: rounded } satisfies WorkerReport));
}

/** Measures updates of records that are spread over a collection with that many records. */
async function amongRecords(place: string, records: number): Promise<Measured> {
  const store = await openStore({ place, waitMs: 600_000 });
  await fill(store, records);
  const times: number[] = [];
  const start = performance.now();
  for (let step = 0; step < 500; step += 1) {
    const key = keyOf((step * 7_919) % records);
    const before = performance.now();
    await store.update("filled", key, (value) => `${(value ?? "").slice(0, 200)}${step}`);
    times.push(performance.now() - before);
  }
  const seconds = (performance.now() - start) / 1_000;
  await store.close();
  return summarise(times, seconds);
}

function keyOf(index: number): string {
  return `k${String(index).padStart(9, "0")}`;
}

async function fill(store: MaintainedStore, records: number): Promise<void> {
  const [facts] = (await store.listCollections()).filter(({ collection }) => collection === "filled");
  for (let first = facts?.records ?? 0; first < records; first += 5_000) {
    const count = Math.min(5_000, records - first);
    const page = Array.from({ length: count }, (_, index) => ({
      ...{ key: keyOf(first + index), value: "v".repeat(200), written: Date.now() },
    }));
    await store.copyRecords("filled", page);
  }
}

function summarise(times: number[], seconds: number): Measured {
  times.sort((left, right) => left - right);
  const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(times.length * share))]!;
  return { operations: times.length, perSecond: times.length / seconds, p50: at(0.5), p99: at(0.99) };
}

interface Facts {
  readonly cores: number;
  readonly load: number;
  readonly syncMs: number;
  readonly rows: readonly { readonly job: string; readonly store: string; readonly measured: Measured }[];
}

function render({ cores, load, syncMs, rows }: Facts): string {
  const jobs = [...new Set(rows.map(({ job }) => job))];
  const cell = (job: string, store: string): string => {
    const found = rows.find((row) => row.job === job && row.store === store)?.measured;
    if (found === undefined) return "– | – | –";
    return `${Math.round(found.perSecond).toLocaleString("en")} | ${found.p50.toFixed(2)} | ${found.p99.toFixed(2)}`;
  };
  return [
    `${cores} cores, load ${load.toFixed(1)} at the end, ${syncMs.toFixed(2)} ms for one write to the disk. Times in milliseconds.`,
    "",
    "| job | SQLite /s | p50 | p99 | PostgreSQL /s | p50 | p99 |",
    "|---|---|---|---|---|---|---|",
    ...jobs.map((job) => `| ${job} | ${cell(job, "SQLite")} | ${cell(job, "PostgreSQL")} |`),
    "",
  ].join("\n");
}
