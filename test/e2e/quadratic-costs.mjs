/** Prints how much longer the built code takes for four times as much of one thing: `{ input: ratio }`, the least of up to
 *  three tries. An input that the code refuses has the error instead. Arguments: the work, the least ratio that is too high.
 *  For `replay`, prints the seconds of processor time for a recording of 1 MB of each client. */

import { createTrimmer } from "../../dist/history/index.js";
import { createIntake } from "../../dist/intake/index.js";
import { countMessages, formatOfRequest, validateRequest } from "../../dist/messages/index.js";
import { prepareStretches, readRecording, replaySession } from "../../dist/replay/index.js";
import { createCounter } from "../../dist/tokens/index.js";
import { conversations, histories, recordings } from "./quadratic-inputs.mjs";

const [work, limit] = [process.argv[2], Number(process.argv[3])];
const counter = await createCounter("estimate:o200k");
/** An intake holds at most 500 texts. Only above that its time is linear. */
const bytes = work === "intake" ? 300_000 : 100_000;

/** Thousands of short calls: the most calls that a recording of this size can have. */
async function replay(write) {
  const session = readRecording(write(conversations["messages of one call"](1_000_000)), { file: "recording" });
  const stretches = prepareStretches(session, { counter, model: session.model });
  const options = { window: 128_000, reserve: 16_000, prefixTokens: 20_000, keep: 10 };
  for (const policy of ["none", "rfc", "economic"]) await replaySession(stretches, { ...options, policy });
}

async function trim(text, policies) {
  const messages = JSON.parse(text);
  const format = formatOfRequest(messages);
  for (const policy of policies) {
    const trimmer = await createTrimmer({ contextWindow: 32_000, reserve: 8_000, counter, policy, format });
    trimmer.reduce({ messages });
  }
}

async function admit(text) {
  const intake = await createIntake({ counter, sessionId: "costs" });
  for (const { content } of JSON.parse(text)) {
    for (const part of Array.isArray(content) ? content : [])
      if (part.type === "tool_result")
        await intake.admit({ tool: "Read", input: { file_path: "a.ts" }, text: part.content });
  }
}

/** The RFC's own messages are validated, and counted or trimmed only after they were converted. */
const formats = Object.keys(histories).filter((name) => name !== "rfc");
const everyHistory = (run, { only = formats, kinds = Object.keys(conversations) } = {}) =>
  only.flatMap((format) =>
    kinds.map((kind) => [`${format}: ${kind}`, (size) => histories[format](conversations[kind](size)), run]),
  );
const manyParts = ["calls in one message", "one id in one message", "messages of one call", "thinking"];
const allPolicies = ["economic", "gentle", "frugal", "rfc", "rfc-headroom"];
const jobs = {
  trim: () => everyHistory((text) => trim(text, ["economic", "rfc"]), { only: ["anthropic", "responses"] }),
  "trim with each policy": () =>
    allPolicies.flatMap((policy) =>
      everyHistory((text) => trim(text, [policy]), { kinds: manyParts }).map(([name, ...job]) => [
        `${policy}, ${name}`,
        ...job,
      ]),
    ),
  validate: () =>
    everyHistory((text) => void validateRequest(JSON.parse(text), { strict: true }), { only: Object.keys(histories) }),
  count: () => everyHistory((text) => void countMessages(JSON.parse(text), counter)),
  intake: () =>
    Object.entries(conversations).map(([name, make]) => [name, (size) => histories.anthropic(make(size)), admit]),
};

async function time(text, run) {
  const start = process.cpuUsage();
  await run(text);
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1_000;
}

/** Milliseconds below which a ratio says nothing: the first run compiles, and the machine has other work. What takes
 *  `limit` times as long for 400 KB takes less than two seconds for 1 MB, even in quadratic time. */
const leastMs = 30;

/** Most inputs stay below that and run once. */
async function ratioOf(make, run) {
  const large = make(4 * bytes);
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 3 && least > limit; attempt++) {
    let after = await time(large, run);
    if (after <= limit * leastMs) return after / leastMs;
    const small = make(bytes);
    if (attempt === 0) await time(small, run);
    const before = await time(small, run);
    after = Math.min(after, await time(large, run));
    least = Math.min(least, after / Math.max(before, leastMs));
  }
  return least;
}

const found = {};
if (work === "replay")
  for (const [client, write] of Object.entries(recordings)) found[client] = (await time(write, replay)) / 1_000;
for (const [name, make, run] of jobs[work]?.() ?? []) {
  // An input that is not read costs nothing: that is a failure, not a good ratio.
  const ratio = await ratioOf(make, run).catch((error) => `${error}`);
  found[name] = typeof ratio === "number" ? Number(ratio.toFixed(2)) : ratio;
}
console.log(JSON.stringify(found));
