/** Measures whether a request still holds the names that the model is about to use: paths, identifiers and the like that
 *  it read at least ten turns ago. */
import type { Fields } from "../../src/core/text/index.ts";

/** How many far names a session's calls used, and how many of them the requests still held. */
export interface FarNames {
  readonly used: number;
  readonly held: number;
}

export interface FarNamesMeter {
  /** Takes a call: the history so far, what was sent for it, and the answer that followed. */
  add(history: readonly object[], sent: readonly object[], answer: object): void;
  totals(): FarNames;
}

const farTurns = 10;
const mostResults = 3;

export function createFarNamesMeter(): FarNamesMeter {
  const namesOf = createNameReader();
  /** By name: the number of results that hold it, and the turn in which a message last held it. */
  const results = new Map<string, number>();
  const lastTurn = new Map<string, number>();
  const userNames = new Set<string>();
  let read = 0;
  let turn = 0;
  let used = 0;
  let held = 0;
  const countNames = (block: object, role: unknown): void => {
    const isResult = Reflect.get(block, "type") === "tool_result";
    for (const name of namesOf(block)) {
      if (isResult) results.set(name, (results.get(name) ?? 0) + 1);
      else if (role === "user") userNames.add(name);
    }
  };
  const follow = (message: object): void => {
    const { role, content } = message as Fields;
    if (role === "assistant") turn++;
    for (const name of namesOf(message)) lastTurn.set(name, turn);
    for (const block of blocksOf(content)) countNames(block, role);
  };
  return {
    add(history, sent, answer) {
      for (const message of history.slice(read)) follow(message);
      read = history.length;
      for (const name of namesOf(withoutThinking(answer))) {
        const count = results.get(name) ?? 0;
        const isFar = turn - (lastTurn.get(name) ?? turn) >= farTurns;
        if (count === 0 || count > mostResults || userNames.has(name) || !isFar) continue;
        used++;
        if (sent.some((message) => namesOf(message).has(name))) held++;
      }
    },
    totals: () => ({ used, held }),
  };
}

/** What the answer says and calls. */
function withoutThinking(answer: object): object {
  const { content } = answer as Fields;
  return blocksOf(content).filter((block) => !/thinking$/.test(String(Reflect.get(block, "type"))));
}

function blocksOf(content: unknown): readonly object[] {
  return Array.isArray(content) ? content : [{ type: "text", text: content }];
}

/** Reads each object once. */
function createNameReader(): (value: object) => ReadonlySet<string> {
  const known = new WeakMap<object, ReadonlySet<string>>();
  return (value) => {
    const found = known.get(value) ?? new Set(textsIn(value).flatMap(namesIn));
    known.set(value, found);
    return found;
  };
}

const skipped: ReadonlySet<string> = new Set(["signature", "data", "id", "tool_use_id", "type"]);

function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, field]) => (skipped.has(name) ? [] : textsIn(field)));
}

function namesIn(text: string): string[] {
  const words = text.match(/[\w./:#@-]{8,120}/g) ?? [];
  return words.map((word) => word.replace(/^[./:#@-]+|[./:#@-]+$/g, "")).filter(isName);
}

function isName(word: string): boolean {
  return word.length >= 8 && /[_./:#@\d-]|[a-z][A-Z]/.test(word) && /[A-Za-z]/.test(word);
}
