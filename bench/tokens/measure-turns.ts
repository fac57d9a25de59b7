/** What counting a growing conversation costs: counted again on every turn, from the cache, and after the messages were parsed again. */
import { countMessages } from "../../src/core/messages/index.ts";
import type { Counter } from "../../src/core/tokens/index.ts";
import { type BenchCounter, counterNamed } from "./counters.ts";
import { bestTime } from "./processor-time.ts";
import type { BenchText } from "./texts.ts";

export interface TurnsResult {
  readonly counter: string;
  readonly turns: number;
  readonly messages: number;
  readonly jsonBytes: number;
  readonly recountMs: number;
  readonly incrementalMs: number;
  /** One count of all messages right after JSON.parse, by a counter that has counted an earlier copy. */
  readonly parseMs: number;
  readonly reparsedMs: number;
}

const TURNS = 200;
const COPIES = 20;

export function measureTurns(texts: readonly BenchText[], counters: readonly BenchCounter[]): TurnsResult {
  const counter = counterNamed(counters, "estimate:claude-5");
  const session = createSession(texts);
  const json = JSON.stringify(session);
  return {
    counter: counter.name,
    turns: TURNS,
    messages: session.length,
    jsonBytes: Buffer.byteLength(json),
    recountMs: bestTime(3, () => countEveryTurn(session, () => withoutCache(counter))),
    incrementalMs: bestTime(5, () => {
      const own = withoutCache(counter);
      countEveryTurn(session, () => own);
    }),
    ...timeReparsed(json, withoutCache(counter)),
  };
}

/** Two messages a turn, in Anthropic's shape: what the model says and calls, and the result, which is one of the texts. */
export function createSession(texts: readonly BenchText[]): object[] {
  return Array.from({ length: TURNS }, (_, turn) => {
    const id = `toolu_${turn}`;
    // A prime step walks through all categories, not through one after the other.
    const { text } = texts[(turn * 7_919) % texts.length]!;
    const input = { path: `src/part-${turn}/file.ts`, limit: turn, pattern: text.slice(0, 40) };
    const thought = { type: "thinking", thinking: text.slice(-300), signature: "A".repeat(640) };
    const call = { type: "tool_use", id, name: "read_file", input };
    return [
      { role: "assistant", content: [thought, { type: "text", text: text.slice(100, 220) }, call] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: text }] },
    ];
  }).flat();
}

/** Caches belong to a counter object: a copy has none yet. */
function withoutCache(counter: Counter): Counter {
  return { ...counter };
}

function countEveryTurn(session: readonly object[], counterOf: () => Counter): void {
  for (let turn = 1; turn <= TURNS; turn++) countMessages(session.slice(0, 2 * turn), counterOf());
}

function timeReparsed(json: string, counter: Counter): { parseMs: number; reparsedMs: number } {
  const copies = Array.from({ length: 2 * COPIES }, () => JSON.parse(json) as object[]);
  for (const copy of copies.splice(COPIES)) countMessages(copy, counter);
  return {
    parseMs: bestTime(COPIES, () => void JSON.parse(json)),
    reparsedMs: bestTime(COPIES, (copy) => void countMessages(copies[copy]!, counter)),
  };
}
