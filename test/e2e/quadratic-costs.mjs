/** Prints how much longer the built code takes for four times as much of one thing: `{ input: ratio }`, the least of up to three tries.
 *  Arguments: the work, the least ratio that is too high. */

import { createTrimmer } from "../../dist/history/index.js";
import { createIntake } from "../../dist/intake/index.js";
import { countMessages, formatOfRequest, validateRequest } from "../../dist/messages/index.js";
import { prepareStretches, readRecording, replaySession } from "../../dist/replay/index.js";
import { createCounter } from "../../dist/tokens/index.js";
import { clientRecordings, conversations, histories, recordings } from "./quadratic-inputs.mjs";

const [work, limit] = [process.argv[2], Number(process.argv[3])];
const counter = await createCounter("estimate:o200k");
const bytes = 150_000;

async function replay(text, policies) {
  const session = readRecording(text, { file: "recording" });
  const stretches = prepareStretches(session, { counter, model: session.model }).filter(
    ({ calls }) => calls.length > 0,
  );
  const options = { window: 32_000, reserve: 8_000, prefixTokens: 0, keep: 10 };
  if (stretches.length === 0) return;
  for (const policy of policies) await replaySession(stretches, { ...options, policy });
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

const everyHistory = (run) =>
  Object.entries(histories).flatMap(([format, write]) =>
    Object.entries(conversations).map(([name, make]) => [`${format}: ${name}`, (size) => write(make(size)), run]),
  );
const everyRecording = (run) => [
  ...Object.entries(recordings).flatMap(([client, { write }]) =>
    Object.entries(conversations).map(([name, make]) => [`${client}: ${name}`, (size) => write(make(size)), run]),
  ),
  ...Object.entries(clientRecordings)
    .filter(([name]) => !name.includes("files of") && !name.includes("copies of"))
    .map(([name, make]) => [name, (size) => Object.values(make(size))[0], run]),
];
const jobs = {
  replay: () => everyRecording((text) => replay(text, ["none", "economic"])),
  "replay with rfc": () => everyRecording((text) => replay(text, ["rfc"])),
  "replay with intake": () => everyRecording((text) => replay(text, ["none+all"])),
  trim: () => everyHistory((text) => trim(text, ["economic", "gentle", "frugal", "rfc", "rfc-headroom"])),
  validate: () => everyHistory((text) => void validateRequest(JSON.parse(text), { strict: true })),
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

/** Milliseconds below which a ratio says nothing: the first run compiles, and the machine has other work. */
const leastMs = 60;

const ratios = {};
for (const [name, make, run] of jobs[work]()) {
  const [small, large] = [make(bytes), make(4 * bytes)];
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 3 && least > limit; attempt++) {
    await time(small, run).catch(() => 0);
    const before = await time(small, run).catch(() => 0);
    const after = await time(large, run).catch(() => 0);
    least = Math.min(least, after / Math.max(before, leastMs));
  }
  ratios[name] = Number(least.toFixed(2));
}
console.log(JSON.stringify(ratios));
