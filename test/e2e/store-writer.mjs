/**
 * A process that works on a store: node store-writer.mjs PLACE JOB [COUNT]. It prints a line for every write that the
 * store acknowledged, straight to the descriptor, so that a line the parent reads was printed after the write.
 */
import { writeSync } from "node:fs";
import { openStore } from "../../dist/host/store-file.js";

const [place, job, count = "Infinity"] = process.argv.slice(2);
const say = (line) => writeSync(1, `${line}\n`);
const jobs = { append, increment, update, hold, write, endure };
const store = await openStore({ place, waitMs: 60_000 });
await jobs[job]();
await store.close();

async function append() {
  for (let index = 0; index < Number(count); index += 1) {
    say(await store.append("log", [`${process.pid}:${index}:a`, `${process.pid}:${index}:b`]));
  }
}

/** Compare and set by hand, as a caller with its own conflict handling does it. */
async function increment() {
  for (let done = 0; done < Number(count); ) {
    const record = await store.get("counters", "n");
    const value = String(Number(record?.value ?? 0) + 1);
    try {
      await store.put("counters", "n", value, { expectedRevision: record?.revision ?? 0 });
      done += 1;
    } catch (error) {
      if (error.code !== "store_conflict") throw error;
    }
  }
}

async function update() {
  for (let index = 0; index < Number(count); index += 1) {
    await store.update("counters", "u", (value) => String(Number(value ?? 0) + 1));
  }
}

/** Keeps the store open, with a write in its log, until it is killed. */
async function hold() {
  say(await store.append("log", ["held"]));
  setInterval(() => {}, 1_000);
  await new Promise(() => {});
}

/** Endless writes of every kind and size; the sizes make the log wrap and checkpoints happen. */
async function write() {
  for (let index = 0; ; index += 1) {
    const size = index % 10 === 0 ? 100_000 : 100;
    const sequence = await store.append("log", [`${index}:`.padEnd(size, "x")]);
    const revision = await store.put("records", `k${index % 50}`, `${index}:`.padEnd(size, "y"));
    say(`${index} ${sequence} ${revision}`);
  }
}

/** Endless writes that go on after an error of the store. A line says what was stored, or "?" if the store did not say so. */
async function endure() {
  for (let index = 0; ; index += 1) {
    const id = `${process.pid}:${index}`;
    try {
      const sequence = await store.append("log", [id]);
      const { revision } = await store.update("counters", `${process.pid}`, (value) => String(Number(value ?? 0) + 1));
      say(`${id} ${sequence} ${revision}`);
    } catch (error) {
      if (error.code !== "store_unavailable") throw error;
      say(`${id} ?`);
    }
  }
}
