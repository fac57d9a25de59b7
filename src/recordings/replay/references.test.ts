import { describe, expect, test } from "vitest";
import { generateRequest } from "../../../test/generate/generate-request.ts";
import { formatNames } from "../../core/messages/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import { prepareSession } from "./prepare-session.ts";
import type { ReferenceTotals } from "./references.ts";
import { type Reducer, replayReducer, replaySession } from "./replay-session.ts";

const characters: Counter = { name: "characters", count: (text) => text.length };
const wide = { window: 1_000_000, reserve: 0, prefixTokens: 0 };

let calls = 0;
const call = (input: object, result: string, name = "run") => {
  const id = `c${++calls}`;
  return [
    { role: "assistant", content: [{ type: "tool_use", id, name, input }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: result }] },
  ];
};
const user = (text: string) => ({ role: "user", content: [{ type: "text", text }] });
const assistant = (text: string) => ({ role: "assistant", content: [{ type: "text", text }] });
/** Turns that refer to nothing. */
const idle = (turns: number) => Array.from({ length: turns }, (_, index) => call({ step: index }, "done")).flat();

/** Replays messages with every result cleared whose text `isLost`. */
async function measure(messages: readonly object[], isLost: (text: string) => boolean): Promise<ReferenceTotals> {
  const session = prepareSession({ file: "a", source: "messages", messages, notes: [] }, { counter: characters });
  const clear = (message: object): object => {
    const text = JSON.stringify(message);
    return text.includes("tool_result") && isLost(text) ? user("gone") : message;
  };
  const cleared = new Map(session.messages.map((message) => [message, clear(message)]));
  const reduce: Reducer = (history) => ({
    messages: history.map((message) => cleared.get(message) as object),
    ...{ isEpoch: false, keptShare: 1, breakpoints: [] },
  });
  return (await replayReducer(session, reduce, wide)).totals.references;
}

const line = "const answer = computeAnswer(question);";
const everything = () => true;
const nothing = () => false;

describe("quotes", () => {
  test("are found among lines that begin alike and lines that other lines begin with", async () => {
    const start = "x".repeat(30);
    const lines = [start, `${start}x`, `${start}xy`, `${start}b`, `${start}ba`, `${start}z`];
    for (const quoted of lines) {
      const messages = [user("go"), ...call({}, lines.join("\n")), ...call({}, `${start}q`), assistant(quoted)];
      expect((await measure(messages, nothing)).quotes, quoted).toMatchObject({ found: 1, total: 1 });
      const isLost = (text: string): boolean => text.includes(`${start}z`);
      // The other result begins with the shortest line.
      expect((await measure(messages, isLost)).quotes.found, quoted).toBe(quoted === start ? 1 : 0);
    }
  });

  test("are whole lines of earlier results, with or without line numbers, in text and inputs", async () => {
    const messages = [
      user("go"),
      ...call({}, `    12→  ${line}\nshort line\n`),
      ...call({ content: `a new line that no result ever had\n${line}` }, "done"),
      assistant(`It says:\n${line}\nshort line`),
    ];
    expect((await measure(messages, nothing)).quotes).toMatchObject({ found: 2, total: 2 });
    // The input of the second call still has the line.
    expect((await measure(messages, everything)).quotes).toMatchObject({ found: 1, total: 2 });
  });

  test("are far if nothing repeated them for 10 turns", async () => {
    const quoted = (turns: number) => [user("go"), ...call({}, line), ...idle(turns), assistant(line)];
    expect((await measure(quoted(8), everything)).quotes.far).toEqual({ found: 0, total: 0 });
    expect((await measure(quoted(9), everything)).quotes.far).toEqual({ found: 0, total: 1 });
    expect((await measure(quoted(9), nothing)).quotes.far).toEqual({ found: 1, total: 1 });
  });

  test("fetch a lost result once in 10 calls, whatever number of its lines is missing", async () => {
    const other = "export function computeAnswer(question) {";
    const result = call({}, `${line}\n${other}`);
    const isLost = (text: string) => text.includes("computeAnswer");
    const messages = [user("go"), ...result, assistant(`${line}\n${other}`), user("again"), assistant(other)];
    expect(await measure(messages, isLost)).toMatchObject({ refetches: 1, quotes: { found: 1, total: 3 } });
    const cleared = [user("go"), ...result, ...call({ line }, "ok"), ...idle(9), ...call({ other }, "ok")];
    expect(await measure(cleared, isLost)).toMatchObject({ refetches: 2 });
  });
});

test("notes are the first sentences of thinking in the last 10 turns", async () => {
  const thought = (turn: number) => ({
    type: "thinking",
    thinking: `I do step ${turn} now. And more.`,
    signature: "s",
  });
  const turns = Array.from({ length: 15 }, (_each, turn) => {
    const [called, answered] = call({ step: turn }, "done") as [{ content: object[] }, object];
    return [{ ...called, content: [thought(turn), ...called.content] }, answered];
  });
  const messages = [user("go"), ...turns.flat(), assistant("done")];
  // 0 to 9 notes for the first ten calls, then 10 for each of the other six.
  expect((await measure(messages, nothing)).notes).toEqual({ found: 105, total: 105 });
  const session = prepareSession({ file: "a", source: "messages", messages, notes: [] }, { counter: characters });
  const bare = (message: object): object => {
    const { role, content } = message as { role: string; content: { type: string }[] };
    return { role, content: content.filter(({ type }) => type !== "thinking") };
  };
  const reduce: Reducer = (history) => ({
    messages: history.map(bare),
    ...{ isEpoch: false, keptShare: 1, breakpoints: [] },
  });
  expect((await replayReducer(session, reduce, wide)).totals.references.notes).toEqual({ found: 0, total: 105 });
});

test("results in user messages of an agent without tool calls can be quoted", async () => {
  const messages = [
    user("go"),
    assistant("```bash\ncat a.ts\n```"),
    user(`<returncode>0</returncode>\n<output>\n${line}\n</output>`),
    assistant(`It says:\n${line}`),
  ];
  expect((await measure(messages, nothing)).quotes).toMatchObject({ found: 1, total: 1 });
});

describe("names", () => {
  test("come from one to three results and not from the person", async () => {
    const uses = "see src/app/main.ts and src/app/common.ts and src/app/said.ts and plainword and maxTokens_9";
    const messages = [
      user("look at src/app/said.ts"),
      ...call({}, "src/app/main.ts src/app/common.ts src/app/said.ts plainword maxTokens_9"),
      ...Array.from({ length: 3 }, () => call({}, "src/app/common.ts")).flat(),
      assistant(uses),
    ];
    expect((await measure(messages, everything)).names).toMatchObject({ found: 0, total: 2 });
    const sub = (text: string) => !text.includes("main.ts");
    expect((await measure(messages, sub)).names).toMatchObject({ found: 2, total: 2 });
  });
});

describe("edits", () => {
  const file = "src/app/main.ts";
  const edit = call(
    { file_path: `/home/dev/${file}`, old_string: `  ${line}\n}\n  return answer;`, new_string: "x" },
    "ok",
  );

  test("need every line of the text that they replace", async () => {
    const whole = [user("go"), ...call({}, `function f() {\n${line}\n}\n  return answer;`), ...edit, assistant("done")];
    expect((await measure(whole, nothing)).edits).toMatchObject({ found: 1, total: 1 });
    const part = [user("go"), ...call({}, `function f() {\n${line}\n`), ...edit, assistant("done")];
    expect((await measure(part, nothing)).edits).toMatchObject({ found: 0, total: 1 });
  });

  test("are read from lists of edits, too", async () => {
    const edits = [{ oldText: line, newText: "x" }, { old_str: line }];
    const messages = [user("go"), ...call({}, line), ...call({ path: file, edits }, "ok"), assistant("done")];
    expect((await measure(messages, nothing)).edits).toMatchObject({ found: 2, total: 2 });
  });

  test("name the files that later requests should name", async () => {
    const patch = call({ input: `*** Begin Patch\n*** Update File: ${file}\n@@\n-a\n+b` }, "ok", "apply_patch");
    for (const editing of [edit, patch]) {
      const messages = [user("go"), ...editing, ...idle(2), assistant("done")];
      expect((await measure(messages, nothing)).filesNamed).toEqual({ found: 3, total: 3 });
      const session = prepareSession({ file: "a", source: "messages", messages, notes: [] }, { counter: characters });
      const forget: Reducer = () => ({ messages: [user("go")], isEpoch: true, keptShare: 0, breakpoints: [] });
      const { totals } = await replayReducer(session, forget, wide);
      expect(totals.references.filesNamed).toEqual({ found: 0, total: 3 });
    }
  });
});

test.each(formatNames)("every quote and name is there if nothing is trimmed, in the format %s", async (format) => {
  for (const seed of [1, 2, 3]) {
    const { messages } = generateRequest(format, { seed, turns: 60 });
    const recorded = { file: "a", source: "messages", format, messages, notes: [] } as const;
    const session = prepareSession(recorded, { counter: characters });
    const { totals } = await replaySession(session, { ...wide, policy: "none" });
    const { quotes, names, edits, refetches, filesNamed } = totals.references;
    for (const { found, total, far } of [quotes, names]) {
      expect([found, far.found]).toEqual([total, far.total]);
      expect(total).toBeGreaterThan(20);
    }
    expect(edits.total).toBeGreaterThan(0);
    expect([refetches, filesNamed.found]).toEqual([0, filesNamed.total]);
  }
});
