/** Prints how much longer the built code takes for four times as much of one thing (twice as much for `bill --what-if`): `{ input: ratio }`, the least of up to
 *  three tries. An input that the code refuses has the error instead. Arguments: the work, the least ratio that is too high.
 *  For `thousands of calls` and `1 MB`, prints the seconds of processor time for each input. With the name of an input as
 *  third argument, `1 MB` measures only this one. */

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCli } from "../../dist/cli/run-cli.js";
import { createTrimmer } from "../../dist/conversation/history/index.js";
import { createIntake } from "../../dist/conversation/intake/index.js";
import { countMessages, formatOfRequest, validateRequest } from "../../dist/core/messages/index.js";
import { createCounter } from "../../dist/core/tokens/index.js";
import { prepareStretches } from "../../dist/recordings/replay/prepare-session.js";
import { replaySession } from "../../dist/recordings/replay/replay-session.js";
import { readRecording } from "../../dist/recordings/sessions/index.js";
import {
  conversations,
  forks,
  histories,
  instructions,
  recordedRequests,
  recordings,
  shortTurns,
} from "./quadratic-inputs.mjs";

const [script, work, limit, only] = [process.argv[1], process.argv[2], Number(process.argv[3]), process.argv[4]];
const counter = await createCounter("estimate:o200k");
/** An intake holds at most 500 texts. Only above that its time is linear. */
const bytes = { intake: 300_000, "bill --what-if": 500_000 }[work] ?? 100_000;
/** A bill trims only what is too large for a window, so it starts with a large recording. */
const times = work === "bill --what-if" ? 2 : 4;

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

/** Admits results of one message, as a client does that waits for all of them. */
async function admitTogether(texts) {
  const intake = await createIntake({ counter, sessionId: "costs" });
  for (const text of texts) await intake.admit({ tool: "Read", input: { file_path: "a.ts" }, text, isParallel: true });
}

const folder = mkdtempSync(join(tmpdir(), "plimsoll-costs-"));
for (const name of ["objects", "refs"]) mkdirSync(join(folder, ".git", name), { recursive: true });
writeFileSync(join(folder, ".git", "HEAD"), "ref: refs/heads/main\n");

/** Runs a command on a file with this text. A command that refuses the file has looked at it, too. */
const command =
  (name, ...args) =>
  async (text) => {
    writeFileSync(join(folder, name), text);
    const quiet = { write: () => true };
    const world = { env: { HOME: folder }, stdin: (async function* () {})(), stdinKind: "other", stdout: quiet };
    const code = await runCli([...args, "--quiet"], { ...world, stderr: quiet, cwd: () => folder });
    if (code > 1) throw new Error(`exit code ${code}`);
  };
/** opencode exports one JSON value. */
const fileOf = (client) => (client === "opencode" ? "recording.json" : "recording.jsonl");
const replayOf = (client) => command(fileOf(client), "replay", fileOf(client));
const whatIfOf = (client) => command(fileOf(client), "bill", "--what-if", "--no-index", fileOf(client));
const auditFile = command("CLAUDE.md", "audit");

const everyRecording = (runOf, kinds) =>
  Object.entries(recordings).flatMap(([client, write]) =>
    kinds.map((kind) => [`${client}: ${kind}`, (size) => write(conversations[kind](size)), runOf(client)]),
  );
const everyInstruction = () => Object.entries(instructions).map(([name, make]) => [name, make, auditFile]);

/** A recording is about three times as large as its conversation. Texts in a list are as large as they are. */
function fitted([name, make, run]) {
  const probe = make(100_000);
  return [name, Array.isArray(probe) ? probe : make((100_000 * 1_000_000) / probe.length), run];
}

/** The RFC's own messages are validated, and counted or trimmed only after they were converted. */
const formats = Object.keys(histories).filter((name) => name !== "rfc");
const everyHistory = (run, { only = formats, kinds = Object.keys(conversations) } = {}) =>
  only.flatMap((format) =>
    kinds.map((kind) => [`${format}: ${kind}`, (size) => histories[format](conversations[kind](size)), run]),
  );
const manyParts = ["calls in one message", "one id in one message", "messages of one call", "thinking"];
const allPolicies = ["economic", "gentle", "frugal", "rfc", "rfc-headroom"];
const manyCalls = ["messages of one call", "short turns", "calls in one message"];
const jobs = {
  replay: () => [
    ...everyRecording(replayOf, manyCalls),
    ["messages: short turns", shortTurns, replayOf("messages")],
    ...Object.entries({ forks, "recorded requests": recordedRequests }).flatMap(([what, kinds]) =>
      Object.entries(kinds).map(([kind, make]) => [`claude-code: ${what}, ${kind}`, make, replayOf("claude-code")]),
    ),
  ],
  "bill --what-if": () => everyRecording(whatIfOf, manyCalls),
  audit: everyInstruction,
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
  const large = make(times * bytes);
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
if (work === "thousands of calls")
  for (const [client, write] of Object.entries(recordings)) found[client] = (await time(write, replay)) / 1_000;
if (work === "1 MB") {
  const all = [
    ...jobs.replay().map(([name, ...job]) => [`replay, ${name}`, ...job]),
    ...jobs["bill --what-if"]().map(([name, ...job]) => [`bill --what-if, ${name}`, ...job]),
    ...everyInstruction().map(([name, ...job]) => [`audit, ${name}`, ...job]),
    ...["validate", "count", "intake"].flatMap((name) =>
      jobs[name]().map(([input, ...job]) => [`${name}, ${input}`, ...job]),
    ),
    ...everyHistory((text) => trim(text, ["economic"]), { kinds: manyParts }).map(([name, ...job]) => [
      `trim, ${name}`,
      ...job,
    ]),
  ];
  for (const family of ["o200k", "cl100k"]) {
    const exact = await createCounter(`exact:${family}`);
    const count = (text) => void countMessages(JSON.parse(text), exact);
    for (const [name, ...job] of everyHistory(count)) all.push([`exact:${family}, ${name}`, ...job]);
  }
  const together = {
    "one text": () => "const value = compute(input);\n".repeat(7),
    "different texts": (at) => `ok ${at}\n`.repeat(30),
  };
  for (const [kind, make] of Object.entries(together)) {
    const texts = () => Array.from({ length: 5_000 }, (_, at) => make(at));
    all.push([`intake, 5,000 results of one name in one message: ${kind}`, texts, admitTogether]);
  }
  for (const job of all.filter(([name]) => only === undefined || name === only)) {
    const [name, text, run] = fitted(job);
    found[name] = (await time(text, run)) / 1_000;
    for (let attempt = 0; attempt < 3 && found[name] > limit && only === undefined; attempt++)
      found[name] = Math.min(found[name], timeAlone(name));
  }
}

/** After hundreds of other inputs, the compiled code suits none of them, and other programs slow a process down. So what
 *  took too long is measured again in a process of its own. */
function timeAlone(name) {
  return JSON.parse(execFileSync(process.execPath, [script, work, String(limit), name], { encoding: "utf8" }))[name];
}
for (const [name, make, run] of jobs[work]?.() ?? []) {
  // An input that is not read costs nothing: that is a failure, not a good ratio.
  const ratio = await ratioOf(make, run).catch((error) => `${error}`);
  found[name] = typeof ratio === "number" ? Number(ratio.toFixed(2)) : ratio;
}
rmSync(folder, { recursive: true });
console.log(JSON.stringify(found));
