/** Times the built trimmer: prints `{ perTurn: { kind: 5,000 messages by 50 }, parsedAnew: { kind: ratio to JSON.parse } }`.
 *  Arguments: the limits, as JSON; a file with the messages of a long session. */
import { readFileSync } from "node:fs";
import { createTrimmer } from "../../dist/conversation/history/index.js";
import { createCounter } from "../../dist/core/tokens/index.js";

const counter = await createCounter("estimate:claude-5");
const messages = JSON.parse(readFileSync(process.argv[3], "utf8"));
const [short, long, turns] = [50, 5000, 60];
const everything = 1e9;
const limits = JSON.parse(process.argv[2]);

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

/** The ratio of the least times of two works, measured in turns until it is below the limit: other tests share the processor. */
async function ratioOf(measure, { limit, rounds: [atLeast, atMost] }) {
  let [work, reference] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < atLeast || (round < atMost && work / reference > limit); round++) {
    const times = await measure();
    [work, reference] = [Math.min(work, times.work), Math.min(reference, times.reference)];
  }
  return work / reference;
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
  const measure = async () => {
    // The short history takes next to no time, and is asked more often: the engine has to have learned it.
    const few = [];
    for (let run = 0; run < 4; run++) few.push(await turnMs(short, policy, windows[0]));
    return { work: await turnMs(long, policy, windows[1]), reference: Math.min(...few) };
  };
  return ratioOf(measure, { limit: limits.perTurn, rounds: [2, 15] });
}

/** The whole reduction of a history that was parsed again, by parsing it. */
async function parsedAnew(count, { policy, windows }) {
  const text = JSON.stringify(messages.slice(0, count));
  const trimmer = await create(policy, windows[1]);
  const measure = () => {
    const started = performance.now();
    const parsed = JSON.parse(text);
    const between = performance.now();
    trimmer.reduce({ messages: parsed });
    return { work: performance.now() - between, reference: between - started };
  };
  return ratioOf(measure, { limit: limits.parsedAnew, rounds: [8, 75] });
}

const result = { perTurn: {}, parsedAnew: {} };
for (const kind of kinds) {
  result.perTurn[kind.name] = await perTurn(kind);
  for (const count of [200, 2000]) result.parsedAnew[`${kind.name}, ${count} messages`] = await parsedAnew(count, kind);
}
console.log(JSON.stringify(result));
