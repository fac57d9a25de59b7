/**
 * A process that trims: node history-agent.mjs FILE… Each file holds `{ job, options, messages, calls, path, checkpoint }`; a call is the
 * number of messages that it sends. Every line it prints was printed after what it tells of was done.
 */
import { createHash } from "node:crypto";
import { readFileSync, writeSync } from "node:fs";
import { createTrimmer } from "../../dist/conversation/history/index.js";
import { openStore } from "../../dist/host/store-file.js";

const say = (value) => writeSync(1, `${JSON.stringify(value)}\n`);
const digest = ({ messages: sent }) => createHash("sha256").update(JSON.stringify(sent)).digest("hex");

for (const file of process.argv.slice(2)) {
  const { job, options, messages, calls, path, checkpoint, ids } = JSON.parse(readFileSync(file, "utf8"));
  const store = path === undefined ? undefined : await openStore({ place: path, waitMs: 60_000 });
  const trimmer = await createTrimmer({ ...options, store, checkpoint });
  const reduce = (length) => trimmer.reduce({ messages: messages.slice(0, length) });
  await { resume, work, recall }[job]({ trimmer, reduce, messages, calls, ids });
  await store?.close();
}

/** Goes on from a checkpoint. */
async function resume({ reduce, calls }) {
  for (const length of calls) say({ length, sent: digest(reduce(length)) });
}

/** Goes on with a checkpoint after each call until it is killed, or until the last. */
async function work({ trimmer, reduce, messages, calls }) {
  for (const length of calls) {
    const sent = digest(reduce(length));
    const { ledger } = await trimmer.checkpoint();
    say({ length, sent, epochs: ledger.epochs.length });
  }
  // The last calls are never acknowledged.
  for (;;) reduce(messages.length);
}

/** Before it has seen any history. */
async function recall({ trimmer, ids }) {
  for (const id of ids) say({ id, recalled: (await trimmer.recall(id)) ?? null });
}
