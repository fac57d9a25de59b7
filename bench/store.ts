/** Measures SQLite and PostgreSQL side by side: `npm run bench:store [-- --updates N] [--sessions N] [--records N] [--json]`. Starts
 *  a PostgreSQL of its own with its default durability, on the same disk as the file. Each job runs on one store and right after
 *  that on the other, and the numbers of records take turns, so that other work on the machine affects all of them alike.
 *  Results go to stdout, progress to stderr. Every write of SQLite waits for the disk: the default numbers take about 370,000
 *  times what one write to the disk takes, and more on a busy machine. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { MaintainedStore } from "../src/core/store/index.ts";
import { openStore } from "../src/host/store-file.ts";
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

interface Row {
  readonly job: string;
  readonly store: string;
  readonly measured: Measured;
}

type Places = Readonly<Record<"SQLite" | "PostgreSQL", string>>;

const processes = 16;
const appendsEach = 30;
/** The load of the machine, at every note. */
const loads: number[] = [];
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
  const newPlaces = async (name: string): Promise<Places> => ({
    ...{ SQLite: join(folder, `${name}.db`), PostgreSQL: await server.newDatabase() },
  });
  try {
    const durability = server.query(
      "SELECT name || ' ' || setting FROM pg_settings WHERE name = ANY('{fsync,synchronous_commit}')",
    );
    const syncMs = measureSync(folder);
    note(`one write to the disk: ${syncMs.toFixed(2)} ms; PostgreSQL: ${durability.replace("\n", ", ")}`);
    const rows = [
      ...(await measureJobs(await newPlaces("jobs"), settings)),
      ...(await measureSizes(newPlaces, settings)),
    ];
    const facts = { cores: cpus().length, load: loads, syncMs, settings, rows };
    process.stdout.write(settings.json ? `${JSON.stringify(facts, null, 2)}\n` : render(facts));
  } finally {
    await server.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Prints progress with the time and the load. */
function note(text: string): void {
  loads.push(loadavg()[0]!);
  console.error(`${new Date().toISOString().slice(11, 19)} load ${loads.at(-1)!.toFixed(1)}: ${text}`);
}

/** Many processes at once. */
async function measureJobs(places: Places, { updates, sessions }: Settings): Promise<Row[]> {
  const each = Math.ceil(sessions / processes);
  const jobs = [
    { job: `${processes} processes × ${updates} updates of one record`, args: ["one", updates] },
    { job: `${processes} processes × ${updates} updates of own records`, args: ["own", updates] },
    { job: `${each * processes} sessions × ${appendsEach} appends, ${processes} processes`, args: ["sessions", each] },
  ] as const;
  const rows: Row[] = [];
  for (const { job, args } of jobs) {
    for (const [store, place] of Object.entries(places)) {
      const measured = await together(place, args);
      rows.push({ job, store, measured });
      note(`${store}: ${job}: ${measured.perSecond.toFixed(0)}/s`);
    }
  }
  for (const [store, place] of Object.entries(places)) await checkAll(place, { updates, each, store });
  return rows;
}

/** Throws if an acknowledged write is missing. */
async function checkAll(place: string, expected: { updates: number; each: number; store: string }): Promise<void> {
  const store = await openStore({ place });
  const counter = Number((await store.get("bench", "counter"))?.value);
  const own = (await store.list("bench-own")).reduce((sum, { value }) => sum + Number(value), 0);
  const streams = await store.listStreams({});
  const entries = streams.reduce((sum, { entries }) => sum + entries, 0);
  await store.close();
  const wanted = [processes * expected.updates, processes * expected.updates, processes * expected.each * appendsEach];
  const found = [counter, own, entries];
  if (found.some((count, index) => count !== wanted[index])) {
    throw new Error(`${expected.store} has ${found.join(", ")} writes instead of ${wanted.join(", ")}`);
  }
  note(`${expected.store}: has all ${found.reduce((sum, count) => sum + count, 0)} writes`);
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

/** Runs a job in several processes at once. They begin when all of them have opened the store. */
async function together(place: string, [job, count]: readonly [string, number]): Promise<Measured> {
  const self = fileURLToPath(import.meta.url);
  const workers = Array.from({ length: processes }, (_, index) =>
    startWorker([self, "--worker", place, job, String(count), String(index)]),
  );
  await Promise.all(workers.map(({ ready }) => ready));
  for (const { begin } of workers) begin();
  const parts = await Promise.all(workers.map(({ report }) => report));
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

interface Worker {
  readonly ready: Promise<void>;
  begin(): void;
  readonly report: Promise<WorkerReport>;
}

function startWorker(args: readonly string[]): Worker {
  const child = fork(args[0]!, args.slice(1), { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const closed = once(child, "close").then(([code]) => {
    throw new Error(`a worker ended with ${code} before its report`);
  });
  const next = (): Promise<unknown> => Promise.race([once(child, "message").then(([message]) => message), closed]);
  closed.catch(() => {});
  const ready = next();
  return {
    ready: ready.then(() => {}),
    begin: () => child.send("begin"),
    report: ready.then(next) as Promise<WorkerReport>,
  };
}

/** Sends that it is ready, waits, and sends the milliseconds of each operation. */
async function work([place = "", job = "", count = "0", index = "0"]: readonly string[]): Promise<void> {
  const store = await openStore({ place, waitMs: 600_000 });
  process.send!("ready");
  await once(process, "message");
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
  process.send!({ start: started, end, times: rounded } satisfies WorkerReport, () => process.disconnect());
}

/** Measures updates of records that are spread over a store with that many records. */
async function measureSizes(newPlaces: (name: string) => Promise<Places>, settings: Settings): Promise<Row[]> {
  const cases: { job: string; store: string; records: number; opened: MaintainedStore; times: number[] }[] = [];
  for (let records = 1_000; records <= settings.records; records *= 10) {
    for (const [store, place] of Object.entries(await newPlaces(`records-${records}`))) {
      const opened = await openStore({ place, waitMs: 600_000 });
      await fill(opened, records);
      note(`${store}: filled with ${records} records`);
      cases.push({ job: `update among ${records} records`, store, records, opened, times: [] });
    }
  }
  for (let step = 0; step < 2_000; step += 1) {
    for (const { records, opened, times } of cases) {
      const key = keyOf((step * 7_919) % records);
      const before = performance.now();
      await opened.update("filled", key, (value) => `${(value ?? "").slice(0, 200)}${step}`);
      times.push(performance.now() - before);
    }
  }
  note("measured the numbers of records");
  for (const { opened } of cases) await opened.close();
  return cases.map(({ job, store, times }) => {
    const seconds = times.reduce((sum, time) => sum + time, 0) / 1_000;
    return { job, store, measured: summarise(times, seconds) };
  });
}

function keyOf(index: number): string {
  return `k${String(index).padStart(9, "0")}`;
}

async function fill(store: MaintainedStore, records: number): Promise<void> {
  for (let first = 0; first < records; first += 5_000) {
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
  readonly load: readonly number[];
  readonly syncMs: number;
  readonly rows: readonly Row[];
}

function render({ cores, load, syncMs, rows }: Facts): string {
  const jobs = [...new Set(rows.map(({ job }) => job))];
  const cell = (job: string, store: string): string => {
    const found = rows.find((row) => row.job === job && row.store === store)?.measured;
    if (found === undefined) return "– | – | –";
    return `${Math.round(found.perSecond).toLocaleString("en")} | ${found.p50.toFixed(2)} | ${found.p99.toFixed(2)}`;
  };
  return [
    `${cores} cores, load ${Math.min(...load).toFixed(1)} to ${Math.max(...load).toFixed(1)}, ${syncMs.toFixed(2)} ms for one write to the disk. Times in milliseconds.`,
    "",
    "| job | SQLite /s | p50 | p99 | PostgreSQL /s | p50 | p99 |",
    "|---|---|---|---|---|---|---|",
    ...jobs.map((job) => `| ${job} | ${cell(job, "SQLite")} | ${cell(job, "PostgreSQL")} |`),
    "",
  ].join("\n");
}
