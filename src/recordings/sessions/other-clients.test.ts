import { describe, expect, it } from "vitest";
import { readRecording } from "./index.ts";
import { createCopyFinder, type RecordedSession } from "./recorded-session.ts";
import { createUsageSum } from "./recorded-usage.ts";

const linesOf = (values: readonly object[]) => `${values.map((value) => JSON.stringify(value)).join("\n")}\n`;
const read = (...values: object[]) => readRecording(linesOf(values), { file: "s.jsonl" });
const time = "2026-11-16T10:00:00.000Z";

const text = (words: string) => ({ type: "text", text: words });
const use = (id: string) => ({ type: "tool_use", id, name: "read", input: { path: `${id}.ts` } });
const result = (id: string) => ({ type: "tool_result", tool_use_id: id, content: [text(`text of ${id}`)] });
const user = (...content: object[]) => ({ role: "user", content });
const assistant = (...content: object[]) => ({ role: "assistant", content });

function totalsOf({ usage = [] }: RecordedSession) {
  const sum = createUsageSum();
  for (const record of usage) sum.add(record);
  return sum.totals();
}

/** The stretches, each with the index of its first own answer. */
const stretchesOf = ({ earlier = [], ...last }: RecordedSession) =>
  [...earlier, last].map(({ messages, answersFrom }) => ({ messages, answersFrom }));

describe("a pi session", () => {
  let entries = 0;
  const entry = (type: string, parentId: string | null, fields: object) => ({
    ...{ type, id: `e${++entries}`, parentId, timestamp: time },
    ...fields,
  });
  const said = (parentId: string | null, words: string) =>
    entry("message", parentId, { message: { role: "user", content: [text(words)] } });
  const answer = (parentId: string, ...content: object[]) =>
    entry("message", parentId, {
      message: {
        ...{ role: "assistant", content, model: "claude-sonnet-4-5", responseId: `msg_${entries}`, stopReason: "stop" },
        usage: { input: 2, output: 20, cacheRead: 100, cacheWrite: 30 },
      },
    });
  const head = { type: "session", version: 3, id: "s", timestamp: time, cwd: "/src" };

  it("has thinking, calls and results in Anthropic's format, and its usage", () => {
    entries = 0;
    const thought = { type: "thinking", thinking: "hm", thinkingSignature: "c2ln" };
    const call = { type: "toolCall", id: "a", name: "read", arguments: { path: "a.ts" } };
    const found = { role: "toolResult", toolCallId: "a", content: [text("text of a")], isError: false };
    const session = read(
      head,
      entry("model_change", null, { modelId: "claude-sonnet-4-5" }),
      said("e1", "look"),
      answer("e2", thought, text("I look."), call),
      entry("message", "e3", { message: found }),
      answer("e4", text("done")),
    );
    expect(session.messages).toEqual([
      user(text("look")),
      assistant({ type: "thinking", thinking: "hm", signature: "c2ln" }, text("I look."), use("a")),
      user(result("a")),
      assistant(text("done")),
    ]);
    expect(session).toMatchObject({ source: "pi", format: "anthropic", model: "claude-sonnet-4-5", notes: [] });
    expect(totalsOf(session)).toMatchObject({ answers: 2, uncached: 4, read: 200, write5m: 60, output: 40 });
  });

  it("branches where a person went back, and continues a compaction with its summary and what it kept", () => {
    entries = 0;
    const session = read(
      head,
      said(null, "one"),
      answer("e1", text("first")),
      said("e2", "two"),
      answer("e3", text("second")),
      said("e2", "another two"),
      answer("e5", text("other")),
      entry("compaction", "e6", { summary: "They said one.", firstKeptEntryId: "e5", tokensBefore: 9 }),
      said("e7", "three"),
      answer("e8", text("third")),
    );
    const start = [user(text("one")), assistant(text("first"))];
    expect(stretchesOf(session)).toEqual([
      { messages: [...start, user(text("two")), assistant(text("second"))], answersFrom: 1 },
      { messages: [...start, user(text("another two")), assistant(text("other"))], answersFrom: 3 },
      {
        messages: [
          user(text("They said one.")),
          ...[user(text("another two")), assistant(text("other"))],
          ...[user(text("three")), assistant(text("third"))],
        ],
        answersFrom: 4,
      },
    ]);
    expect(session.notes).toEqual([
      "compactions: 1; the requests after each start with its summary",
      "rewinds: 1; each is replayed as a branch of its own",
    ]);
  });
});

describe("a gemini-cli session", () => {
  const head = { sessionId: "s", projectHash: "5e55", startTime: time, lastUpdated: time, kind: "main" };
  const said = (id: string, words: string) => ({ id, timestamp: time, type: "user", content: [{ text: words }] });
  const tokens = { input: 900, output: 15, cached: 640, thoughts: 5, tool: 0, total: 920 };
  const answer = (id: string, content: unknown, more: object = {}) => ({
    ...{ id, timestamp: time, type: "gemini", content, thoughts: [], tokens, model: "gemini-2.5-pro" },
    ...more,
  });
  const response = { functionResponse: { id: "a", name: "read", response: { output: "text of a" } } };
  const call = { id: "a", name: "read", args: { path: "a.ts" }, result: [response], status: "success" };
  const flat = { type: "tool_result", tool_use_id: "a", content: "text of a" };

  it("has the last version of each message, calls and results in Anthropic's format, and its usage", () => {
    const session = read(
      head,
      { $set: { messages: [said("c", "context")] } },
      said("u1", "look"),
      answer("g1", "I look."),
      { $set: { lastUpdated: time } },
      answer("g1", "I look.", { toolCalls: [call] }),
      { id: "u2", timestamp: time, type: "user", content: [response] },
      answer("g2", "done"),
    );
    expect(session.messages).toEqual([
      ...[user(text("context")), user(text("look"))],
      assistant(text("I look."), use("a")),
      user(flat),
      assistant(text("done")),
    ]);
    expect(session).toMatchObject({ source: "gemini-cli", model: "gemini-2.5-pro", notes: [] });
    expect(totalsOf(session)).toMatchObject({ answers: 2, read: 1280, uncached: 520, output: 40 });
  });

  it("keeps a resumed session together, although it repeats ids", () => {
    const callPart = { functionCall: { id: "a", name: "read", args: { path: "a.ts" } } };
    const session = read(
      ...[head, said("u1", "look"), answer("g1", "I look.", { toolCalls: [call] })],
      { id: "u2", timestamp: time, type: "user", content: [response] },
      answer("g2", "done"),
      // The new process writes its first message before it writes all of them.
      ...[head, { $set: { messages: [said("u1", "look")] } }],
      {
        $set: {
          messages: [
            said("u1", "look"),
            answer("g1", [{ text: "I look." }, callPart], { toolCalls: [call] }),
            { id: "g1", timestamp: time, type: "user", content: [response] },
            { id: "u2", timestamp: time, type: "user", content: [response] },
            answer("g2", [{ text: "done" }]),
          ],
        },
      },
      ...[said("u3", "go on"), answer("g3", "done again")],
    );
    expect(session.notes).toEqual([]);
    const repeated = [user(text("look")), assistant(text("I look."), use("a")), user(text(flat.content)), user(flat)];
    expect(session.messages).toEqual([
      ...repeated,
      ...[assistant(text("done")), user(text("go on")), assistant(text("done again"))],
    ]);
    expect(session.answersFrom).toBe(6);
  });

  it("branches at a rewind, and starts a new stretch when its history is replaced", () => {
    const session = read(
      ...[head, said("u1", "one"), answer("g1", "first"), said("u2", "two"), answer("g2", "second")],
      ...[{ $rewindTo: "u2" }, said("u3", "another two"), answer("g3", "other")],
      ...[{ $set: { messages: [said("s", "a summary")] } }, said("u4", "three"), answer("g4", "third")],
    );
    expect(stretchesOf(session).map(({ messages, answersFrom }) => [messages.length, answersFrom])).toEqual([
      [4, 1],
      [4, 3],
      [3, 2],
    ]);
    expect(session.notes).toHaveLength(2);
  });

  it("does not take the history that the program writes after a rewind for a compaction", () => {
    const session = read(
      ...[
        head,
        said("c", "context"),
        said("u1", "one"),
        answer("g1", "first"),
        said("u2", "two"),
        answer("g2", "second"),
      ],
      ...[{ $rewindTo: "u2" }, { $set: { messages: [said("u1", "one"), answer("g1", "first")] } }],
      ...[said("u3", "another two"), answer("g3", "other")],
    );
    expect(session.notes).toEqual(["rewinds: 1; each is replayed as a branch of its own"]);
    expect(session.messages).toHaveLength(4);
  });

  it("may be one JSON value, with results in the calls", () => {
    const messages = [said("u1", "look"), answer("g1", "I look.", { toolCalls: [call] }), answer("g2", "done")];
    const session = readRecording(JSON.stringify({ ...head, messages }, null, 2), { file: "s.json" });
    expect(session.messages).toEqual([
      user(text("look")),
      assistant(text("I look."), use("a")),
      user(flat),
      assistant(text("done")),
    ]);
  });
});

describe("an opencode session", () => {
  const message = (id: string, role: string, more: object = {}) => ({
    ...{ id, role, sessionID: "ses_1", time: { created: Number(id.slice(1)), completed: 100 } },
    ...(role === "assistant" && {
      modelID: "claude-sonnet-4-5",
      tokens: { input: 3, output: 15, reasoning: 5, cache: { read: 100, write: 30 } },
    }),
    ...more,
  });
  const tool = { type: "tool", tool: "read", callID: "a" };
  const exported = [
    { info: message("m1", "user"), parts: [text("look"), { type: "text", text: "hidden", ignored: true }] },
    {
      info: message("m2", "assistant"),
      parts: [
        { type: "step-start" },
        { type: "reasoning", text: "hm", metadata: { anthropic: { signature: "c2ln" } } },
        { ...tool, state: { status: "completed", input: { path: "a.ts" }, output: "text of a" } },
        { ...tool, callID: "b", state: { status: "error", input: { path: "b.ts" }, error: "missing" } },
        { type: "step-finish" },
      ],
    },
    { info: message("m3", "assistant"), parts: [text("done")] },
  ];
  const compacted = [
    { info: message("m4", "user"), parts: [{ type: "compaction", auto: true }] },
    { info: message("m5", "assistant", { summary: true }), parts: [text("They looked.")] },
    { info: message("m6", "user"), parts: [text("go on")] },
    { info: message("m7", "assistant"), parts: [text("done again")] },
  ];
  const readExport = (messages: readonly object[]) =>
    readRecording(JSON.stringify({ info: { id: "ses_1" }, messages }), { file: "export.json" });

  it("has its parts in Anthropic's format, and its usage", () => {
    const session = readExport(exported);
    expect(session.messages).toEqual([
      user(text("look")),
      assistant({ type: "thinking", thinking: "hm", signature: "c2ln" }, use("a"), use("b")),
      user(
        { type: "tool_result", tool_use_id: "a", content: "text of a" },
        { type: "tool_result", tool_use_id: "b", content: "missing", is_error: true },
      ),
      assistant(text("done")),
    ]);
    expect(session).toMatchObject({ source: "opencode", model: "claude-sonnet-4-5", notes: [] });
    expect(totalsOf(session)).toMatchObject({ answers: 2, uncached: 6, read: 200, write5m: 60, output: 40 });
  });

  it("starts a new stretch after a compaction, whose summary is no answer of the conversation", () => {
    const session = readExport([...exported, ...compacted]);
    expect(session.earlier?.[0]?.messages).toHaveLength(4);
    const question = user(text("What did we do so far?"));
    expect(stretchesOf(session)).toMatchObject([
      { answersFrom: 1 },
      {
        messages: [
          ...[question, assistant(text("They looked."))],
          ...[user(text("go on")), assistant(text("done again"))],
        ],
        answersFrom: 3,
      },
    ]);
    expect(session.notes).toEqual(["compactions: 1; the requests after each start with its summary"]);
  });

  it("continues a compaction with the messages that it kept", () => {
    const [asked, ...rest] = compacted;
    const kept = { ...asked, parts: [{ type: "compaction", auto: true, tail_start_id: "m3" }] };
    expect(readExport([...exported, kept, ...rest]).messages).toEqual([
      ...[user(text("What did we do so far?")), assistant(text("They looked.")), assistant(text("done"))],
      ...[user(text("go on")), assistant(text("done again"))],
    ]);
  });

  it("counts the answers that a fork copied once, although their ids are new", () => {
    const copied = exported.map(({ info, parts }) => ({
      info: { ...info, id: `${(info as { id: string }).id}b` },
      parts,
    }));
    const copies = createCopyFinder();
    expect(copies.withoutCopies(readExport(exported)).copied).toBe(0);
    const more = [
      { info: message("m8", "user"), parts: [text("more")] },
      { info: message("m9", "assistant"), parts: [text("done")] },
    ];
    const fork = copies.withoutCopies(readExport([...copied, ...more]));
    expect(fork).toMatchObject({ copied: 2, session: { answersFrom: 5 } });
  });
});
