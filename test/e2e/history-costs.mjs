/** Times the built trimmer: prints `{ perTurn: { kind: 5,000 messages by 50 }, parsedAnew: { kind: ratio to JSON.parse } }`. */
import { createTrimmer } from "../../dist/history/index.js";
import { generateSession } from "../../dist/replay/index.js";
import { createCounter } from "../../dist/tokens/index.js";

const counter = await createCounter("estimate:claude-5");
const { messages } = generateSession({ seed: 3, turns: 2600 });
const [short, long, turns] = [50, 5000, 60];
const everything = 1e9;

// Windows in which the short and the long history are trimmed, and still fit.
const kinds = [
  { name: "economic, nothing to trim", policy: "economic", windows: [everything, everything] },
  { name: "economic", policy: "economic", windows: [20_000, 200_000] },
  { name: "rfc, nothing to trim", policy: "rfc", windows: [everything, everything] },
  { name: "rfc", policy: "rfc", windows: [20_000, 3_000_000] },
];

function median(values) {
  return values.toSorted((a, b) => a - b)[values.length >> 1];
}

async function repeat(times, run) {
  const results = [];
  for (let index = 0; index < times; index++) results.push(await run());
  return median(results);
}

const create = (policy, contextWindow) =>
  createTrimmer({ policy, contextWindow, reserve: 0, format: "anthropic", counter: { ...counter } });

/** Milliseconds of a usual turn: two new messages behind those that are the same objects as before. */
async function turnMs(length, policy, window) {
  const trimmer = await create(policy, window);
  const history = messages.slice(0, length);
  trimmer.reduce({ messages: history });
  const times = [];
  for (let index = length; index < length + 2 * turns; index += 2) {
    history.push(messages[index], messages[index + 1]);
    const started = performance.now();
    trimmer.reduce({ messages: history });
    times.push(performance.now() - started);
  }
  return median(times);
}

async function perTurn({ policy, windows }) {
  await turnMs(short, policy, windows[0]);
  const few = await repeat(7, () => turnMs(short, policy, windows[0]));
  const many = await repeat(5, () => turnMs(long, policy, windows[1]));
  return many / few;
}

/** The whole reduction of a history that was parsed anew, by parsing it. */
async function parsedAnew(count, { policy, windows }) {
  const text = JSON.stringify(messages.slice(0, count));
  const trimmer = await create(policy, windows[1]);
  const [parsing, reducing] = [[], []];
  for (let run = 0; run < 25; run++) {
    const started = performance.now();
    const parsed = JSON.parse(text);
    const between = performance.now();
    trimmer.reduce({ messages: parsed });
    parsing.push(between - started);
    reducing.push(performance.now() - between);
  }
  // The first runs are those in which the engine learns.
  return median(reducing.slice(5)) / median(parsing.slice(5));
}

const result = { perTurn: {}, parsedAnew: {} };
for (const kind of kinds) {
  result.perTurn[kind.name] = await perTurn(kind);
  for (const count of [200, 2000])
    result.parsedAnew[`${kind.name}, ${count} messages`] = await parsedAnew(count, kind);
}
console.log(JSON.stringify(result));
