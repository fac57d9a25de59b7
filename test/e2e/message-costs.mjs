/** Times the built message counting: prints `{ parsedAnew: { kind: ratio to JSON.parse }, everyTurn: ratio to recounting }` for one counter,
 *  or for the argument `hash` `{ hashing, comparing }`, both by JSON.parse. */

import { countMessages, hashMessage } from "../../dist/core/messages/index.js";
import { isSameJson } from "../../dist/core/messages/json-snapshot.js";
import { createCounter } from "../../dist/core/tokens/index.js";

const words = "the budget const return function 42 of error: line => { } import value if (count > 0) src/a.ts\n".split(
  " ",
);
let seed = 7;
const random = () => {
  seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
  return seed / 2 ** 32;
};
function sentences(chars) {
  let text = "";
  while (text.length < chars) text += `${words[Math.floor(random() * words.length)]} `;
  return text.slice(0, chars);
}

/** Turns of a coding agent: thinking, a call, its result. */
function session(turns, { result, input }) {
  return Array.from({ length: turns }, (_, turn) => [
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: sentences(300), signature: "A".repeat(640) },
        { type: "text", text: "Looking at it now." },
        { type: "tool_use", id: `toolu_${turn}`, name: "edit", input: input(turn) },
      ],
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: `toolu_${turn}`, content: result(turn) }] },
  ]).flat();
}

const flat = (turn) => ({ path: `src/part-${turn}/file.ts`, old: sentences(200), limit: turn });
const nested = (turn) => ({
  path: `src/${turn}.ts`,
  edits: [{ old: sentences(200), new: sentences(250) }, { line: turn }],
});
const alike = (turn) => `${"line of output ".repeat(100)}${1000 + turn}${" ok\n".repeat(200)}`;
const line = (turn, at) => `2026-01-01T00:${10 + (turn % 50)}:${10 + at} GET /api/${1000 + turn} 200 ${at}ms`;
const log = (turn) => Array.from({ length: 30 }, (_, at) => line(turn, at)).join("\n");
const short = (content) =>
  Array.from({ length: 4000 }, (_, turn) => ({
    role: turn % 2 ? "assistant" : "user",
    content: content(turn),
  }));
const pdf = Buffer.from("%PDF-1.4 << /Type /Page >>".padEnd(300_000, "stream ")).toString("base64");

const kinds = {
  "results of all kinds": () => session(200, { result: (turn) => sentences(turn % 10 ? 2500 : 20_000), input: flat }),
  "results that differ in one number": () => session(400, { result: alike, input: flat }),
  "results in blocks": () => session(400, { result: (turn) => [{ type: "text", text: alike(turn) }], input: flat }),
  "the same result again and again": () =>
    session(400, { result: (turn) => alike(turn % 3 ? 0 : turn), input: () => ({ command: "npm test" }) }),
  "logs with times": () => session(400, { result: log, input: flat }),
  "two-byte text": () => session(400, { result: (turn) => "今天天气很好 — ".repeat(150) + turn, input: flat }),
  "nested arguments": () => session(400, { result: () => sentences(500), input: nested }),
  "short texts": () => short((turn) => (turn % 5 ? "ok" : `message ${turn}`)),
  "short blocks": () => short((turn) => [{ type: "text", text: `message ${turn}` }]),
  "short calls": () =>
    session(1000, { result: () => "ok", input: (turn) => ({ id: turn }) }).map((message) => ({
      ...message,
      content: message.content.slice(-1),
    })),
  documents: () =>
    short((turn) => `message ${turn}`)
      .slice(0, 20)
      .concat({ role: "user", content: [{ type: "document", source: { type: "base64", data: pdf } }] }),
};

function best(runs, run) {
  let fastest = Number.POSITIVE_INFINITY;
  for (let index = 0; index < runs; index++) {
    const started = performance.now();
    run(index);
    fastest = Math.min(fastest, performance.now() - started);
  }
  return fastest;
}

/** Measured in turns until it costs less than parsing: other tests share the processor. */
function parsedAnew(messages, counter) {
  const text = JSON.stringify(messages);
  for (let run = 0; run < 8; run++) countMessages(JSON.parse(text), counter);
  let parsed;
  let [parsing, counting] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let run = 0; run < 5 || (run < 75 && counting >= parsing); run++) {
    const parse = () => {
      parsed = JSON.parse(text);
    };
    parsing = Math.min(parsing, best(1, parse));
    counting = Math.min(
      counting,
      best(1, () => countMessages(parsed, counter)),
    );
  }
  return counting / parsing;
}

function everyTurn(messages, counter) {
  const run = (counterOf) => {
    for (let turn = 1; turn <= 200; turn++) countMessages(messages.slice(0, 2 * turn), counterOf());
  };
  const fresh = () => ({ ...counter });
  run(() => counter);
  const incremental = best(3, () => {
    const own = fresh();
    run(() => own);
  });
  return incremental / best(1, () => run(fresh));
}

async function countingCosts(name) {
  const counter = await createCounter(name);
  const result = { parsedAnew: {}, everyTurn: everyTurn(kinds["results of all kinds"](), counter) };
  for (const [kind, make] of Object.entries(kinds)) result.parsedAnew[kind] = parsedAnew(make(), counter);
  return result;
}

function hashingCosts() {
  const text = JSON.stringify(kinds["results of all kinds"]());
  let [last, messages] = [JSON.parse(text), []];
  const parse = () => {
    messages = JSON.parse(text);
  };
  const hash = () => messages.forEach((message) => void hashMessage(message));
  const compare = () => {
    if (!messages.every((message, index) => isSameJson(last[index], message))) throw new Error("differs");
  };
  let [parsing, hashing, comparing] = [parse, hash, compare].map(() => Number.POSITIVE_INFINITY);
  for (let run = 0; run < 100; run++) {
    parsing = Math.min(parsing, best(1, parse));
    hashing = Math.min(hashing, best(1, hash));
    comparing = Math.min(comparing, best(1, compare));
    last = messages;
  }
  return { hashing: hashing / parsing, comparing: comparing / parsing };
}

const job = process.argv[2];
console.log(JSON.stringify(job === "hash" ? hashingCosts() : await countingCosts(job)));
