import { describe, expect, it } from "vitest";
import { type ClaudeCodeRecorder, createClaudeCodeRecorder } from "../../../test/generate/claude-code-recording.ts";
import { readRecording } from "./index.ts";
import { createCopyFinder, type RecordedSession } from "./recorded-session.ts";
import { createUsageSum } from "./recorded-usage.ts";

const file = "0c1d.jsonl";
const read = (...values: object[]) => readRecording(values.map((value) => JSON.stringify(value)).join("\n"), { file });

let next = 0;
/** A line as the program writes it: ids, a time, and what the test adds. */
function line(type: string, fields: object): object {
  const second = String(next++ % 60).padStart(2, "0");
  const uuid = `u${next}`;
  return {
    parentUuid: null,
    isSidechain: false,
    sessionId: "s",
    type,
    uuid,
    timestamp: `2026-01-02T03:04:${second}.000Z`,
    ...fields,
  };
}
const said = (content: unknown, fields: object = {}) => line("user", { message: { role: "user", content }, ...fields });
const answer = (id: string, block: object, fields: object = {}) =>
  line("assistant", {
    message: {
      id,
      type: "message",
      role: "assistant",
      model: "claude-opus-4-5",
      content: [block],
      usage: { input_tokens: 9 },
    },
    ...fields,
  });
const call = (id: string) => ({ type: "tool_use", id, name: "Read", input: { file_path: `src/${id}.ts` } });
const result = (id: string, content = `text of ${id}`) => ({ type: "tool_result", tool_use_id: id, content });

describe("a Claude Code session", () => {
  it("joins the lines of one answer, and the results that follow it", () => {
    const session = read(
      line("file-history-snapshot", { snapshot: {} }),
      said("look"),
      answer("m1", { type: "thinking", thinking: "two files", signature: "c2ln" }),
      answer("m1", call("a")),
      answer("m1", call("b")),
      said([result("a")]),
      said([result("b")]),
      answer("m2", { type: "text", text: "done" }),
    );
    expect(session.messages).toEqual([
      { role: "user", content: "look" },
      {
        role: "assistant",
        content: [{ type: "thinking", thinking: "two files", signature: "c2ln" }, call("a"), call("b")],
      },
      { role: "user", content: [result("a"), result("b")] },
      { role: "assistant", content: [{ type: "text", text: "done" }] },
    ]);
    expect(session).toMatchObject({ source: "claude-code", format: "anthropic", model: "claude-opus-4-5" });
    expect(session.notes).toEqual([]);
  });

  it("joins an answer whose first result came before its last call", () => {
    const session = read(
      said("look"),
      answer("m1", call("a")),
      said([result("a")]),
      answer("m1", call("b")),
      said([result("b")]),
    );
    expect(session.messages.slice(1)).toEqual([
      { role: "assistant", content: [call("a"), call("b")] },
      { role: "user", content: [result("a"), result("b")] },
    ]);
  });

  it("keeps a person's text separate from results and from other text", () => {
    const session = read(
      said("look"),
      said("now"),
      answer("m1", call("a")),
      said([result("a")]),
      said([{ type: "text", text: "stop" }]),
    );
    expect(session.messages.map((message) => (message as { role: string }).role)).toEqual([
      "user",
      "user",
      "assistant",
      "user",
      "user",
    ]);
  });

  it("keeps answers without an id separate", () => {
    const block = { type: "text", text: "yes" };
    const bare = () => line("assistant", { message: { role: "assistant", content: [block] } });
    expect(read(said("look"), bare(), bare()).messages.length).toBe(3);
  });

  it("has one time per message: that of an answer's first line, or of the last result", () => {
    const at = (second: number) => ({ timestamp: `2026-01-02T03:04:0${second}.000Z` });
    const session = read(
      said("look", { timestamp: undefined }),
      answer("m1", call("a"), at(1)),
      answer("m1", call("b"), at(2)),
      said([result("a")], at(3)),
      said([result("b")], at(4)),
    );
    const start = Date.parse("2026-01-02T03:04:00.000Z");
    expect(session.times).toEqual([undefined, start + 1000, start + 4000]);
  });

  it("leaves out sub-agents, API errors, repeated and unknown lines, and notes it", () => {
    const first = said("look");
    const session = read(
      { type: "summary", summary: "A title", leafUuid: "u9" },
      first,
      first,
      answer("m1", { type: "text", text: "from a sub-agent" }, { isSidechain: true }),
      answer("m2", { type: "text", text: "API Error: 529" }, { isApiErrorMessage: true }),
      line("progress", {}),
      line("progress", {}),
      line("system", { subtype: "turn_duration" }),
      line("holiday", {}),
      answer("m3", { type: "text", text: "done" }),
    );
    expect(session.messages.length).toBe(2);
    expect(session.notes).toEqual(["left out: 1 API error, 1 holiday line, 1 line of sub-agents, 1 repeated line"]);
  });

  it("drops copies of a result and of a call, but keeps a second, different result", () => {
    const session = read(
      said("look"),
      answer("m1", call("a")),
      answer("m1", call("a")),
      said([result("a")]),
      said([result("a")]),
      said([result("a", "another text")]),
    );
    expect(session.messages.slice(1)).toEqual([
      { role: "assistant", content: [call("a")] },
      { role: "user", content: [result("a"), result("a", "another text")] },
    ]);
    expect(session.notes).toEqual(["left out: 1 repeated call, 1 repeated result"]);
  });

  it("starts a new stretch with the summary of a compaction", () => {
    const session = read(
      said("look"),
      answer("m1", { type: "text", text: "done" }),
      line("system", { subtype: "compact_boundary" }),
      said("A summary.", { isCompactSummary: true, isVisibleInTranscriptOnly: true }),
      said("A reminder.", { isMeta: true }),
    );
    expect(session.earlier?.map(({ messages }) => messages.length)).toEqual([2]);
    expect(session.messages).toEqual([
      { role: "user", content: "A summary." },
      { role: "user", content: "A reminder." },
    ]);
    expect(session.notes).toEqual(["compactions: 1; the requests after each start with its summary"]);
  });

  it("reads a sub-agent's own file", () => {
    const side = { isSidechain: true };
    const session = read(said("look", side), answer("m1", { type: "text", text: "done" }, side));
    expect(session.messages.length).toBe(2);
  });

  it("ignores the model of an answer that the program wrote", () => {
    const made = line("assistant", {
      message: { id: "x", role: "assistant", model: "<synthetic>", content: [] },
    });
    expect(read(said("look"), made).model).toBeUndefined();
  });

  it("names the line of a message without content", () => {
    expect(() => read(said("look"), line("assistant", { message: { id: "m1" } }))).toThrow(
      expect.objectContaining({ code: "invalid_message", file, line: 2 }),
    );
  });
});

const readLines = ({ lines }: ClaudeCodeRecorder) => read(...lines);

/** The messages before each answer that counts. */
function requestsOf({ earlier = [], ...last }: RecordedSession): unknown[] {
  return [...earlier, last].flatMap(({ messages, answersFrom = 0 }) => {
    const isAnswer = (message: object, index: number) =>
      index >= answersFrom && (message as { role: string }).role === "assistant";
    return messages.flatMap((message, index) => (isAnswer(message, index) ? [messages.slice(0, index)] : []));
  });
}

/** Messages with their texts as blocks, and neighbours of one role joined. */
function joined(requests: readonly unknown[]): unknown {
  return requests.map((messages) => {
    const all: { role: string; content: object[] }[] = [];
    for (const { role, content } of messages as { role: string; content: string | object[] }[]) {
      const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
      if (all.at(-1)?.role === role) all.at(-1)?.content.push(...blocks);
      else all.push({ role, content: [...blocks] });
    }
    return all;
  });
}

/** A session with parallel calls, a rewind to its first answer, and a compaction. */
function recorded(hasRequests: boolean): ClaudeCodeRecorder {
  const session = createClaudeCodeRecorder({ sessionId: "s1", hasRequests });
  session.says("Fix the limit.");
  session.answers("I look.", "a");
  const early = session.leaf;
  session.results("a");
  session.answers("Two more.", "b", "c");
  session.results("b", "c");
  session.answers("Done.");
  session.rewinds(early);
  session.results("a");
  session.says("Another way.");
  session.answers("I start again.", "d");
  session.results("d");
  session.answers("Done again.");
  session.compacts("They fixed the limit.");
  session.says("Now the docs.");
  session.answers("I read.", "e");
  session.results("e");
  session.answers("Done with the docs.");
  return session;
}

describe("a Claude Code session with rewinds and compactions", () => {
  it("is refused if its rewinds repeat more messages than can be replayed", () => {
    const turn = (at: number, parentUuid: string | null) => [
      said(`question ${at}`, { uuid: `q${at}`, parentUuid }),
      answer(`m${at}`, { type: "text", text: "b" }, { uuid: `a${at}`, parentUuid: `q${at}` }),
    ];
    const turns = Array.from({ length: 400 }, (_, at) => turn(at, at === 0 ? null : `a${at - 1}`)).flat();
    const rewinds = (count: number) => Array.from({ length: count }, (_, at) => turn(400 + at, "a399")).flat();
    // The first of them only continues.
    expect(read(...turns, ...rewinds(100)).earlier).toHaveLength(99);
    expect(() => read(...turns, ...rewinds(200))).toThrow("repeat more than 100000 messages");
  });

  it("has exactly the requests that were recorded, with system text and tools", () => {
    const session = recorded(true);
    const result = readLines(session);
    expect(requestsOf(result)).toEqual(session.sent);
    expect(result.system).toEqual([{ type: "text", text: "You are an agent that edits code." }]);
    expect(result.tools).toHaveLength(1);
    expect(result.notes).toEqual([
      "compactions: 1; the requests after each start with its summary",
      "rewinds: 1; each is replayed as a branch of its own",
    ]);
  });

  it("has the requests that its lines show if none was recorded", () => {
    const session = recorded(false);
    expect(joined(requestsOf(readLines(session)))).toEqual(joined(session.sent));
  });

  it("falls back to the lines where a message of a request is missing", () => {
    const session = recorded(true);
    const lines = session.lines.filter((each) => (each as { type: string }).type !== "api-request-blob");
    expect(joined(requestsOf(read(...lines)))).toEqual(joined(session.sent));
  });

  it("continues a branch that was left when a person returns to it", () => {
    const session = createClaudeCodeRecorder({ sessionId: "s1", hasRequests: false });
    session.says("Fix the limit.");
    session.answers("Which one?");
    const start = session.leaf;
    session.says("The first.");
    session.answers("Done with the first.");
    const first = session.leaf;
    session.rewinds(start);
    session.says("The second.");
    session.answers("Done with the second.");
    session.rewinds(first);
    session.says("The third.");
    session.answers("Done with the third.");
    const result = readLines(session);
    expect(joined(requestsOf(result))).toEqual(joined(session.sent));
    expect(result.notes).toEqual(["rewinds: 2; each is replayed as a branch of its own"]);
  });

  it("counts each answer once if a fork copies the session", () => {
    const session = recorded(true);
    const fork = session.fork("s2");
    fork.says("And the tests.");
    fork.answers("Done with the tests.");
    const copies = createCopyFinder();
    const all = [session, fork].map((each) => copies.withoutCopies(readLines(each)));
    expect(all.map(({ copied }) => copied)).toEqual([0, 7]);
    expect(all.flatMap((each) => requestsOf(each.session))).toHaveLength(8);
  });
});

describe("the usage of a Claude Code session", () => {
  it("includes requests that have no answer in the file, such as a compaction's, but each once", () => {
    const answer = (id: string, sessionId: string, usage: object) => ({
      ...{ type: "assistant", uuid: `u-${id}-${sessionId}`, sessionId },
      message: { id, role: "assistant", model: "claude-sonnet-5", content: [{ type: "text", text: "ok" }], usage },
    });
    const state = (sessionId: string, modelUsage: object) => ({ type: "cost-state", sessionId, modelUsage });
    const sonnet = { inputTokens: 170, outputTokens: 30, cacheReadInputTokens: 900, cacheCreationInputTokens: 200 };
    const first = {
      input_tokens: 50,
      cache_read_input_tokens: 400,
      cache_creation_input_tokens: 200,
      output_tokens: 20,
    };
    const lines = [
      answer("m1", "s1", first),
      state("s1", { "claude-sonnet-5": { ...sonnet, inputTokens: 100, cacheReadInputTokens: 400 } }),
      // A later sum replaces an earlier one.
      state("s1", { "claude-sonnet-5": sonnet, "claude-haiku-4-5": { inputTokens: 7, outputTokens: 3 } }),
    ];
    // A fork continues the sum of the session that it copied.
    const fork = [
      answer("m1", "s2", first),
      answer("m2", "s2", { input_tokens: 11, output_tokens: 5 }),
      state("s2", {
        "claude-sonnet-5": { ...sonnet, inputTokens: 181, outputTokens: 35 },
        "claude-haiku-4-5": { inputTokens: 7, outputTokens: 3 },
      }),
    ];
    const sum = createUsageSum();
    for (const each of [lines, fork]) {
      const text = each.map((line) => JSON.stringify(line)).join("\n");
      for (const record of readRecording(text, { file: "s.jsonl" }).usage ?? []) sum.add(record);
    }
    expect(sum.totals()).toMatchObject({ answers: 2, uncached: 188, read: 900, write5m: 200, output: 38 });
  });

  it("adds up to what the provider billed, also over sub-agents and forks", () => {
    const session = recorded(true);
    const agent = createClaudeCodeRecorder({ sessionId: "agent-1", isSubAgent: true });
    agent.says("Look for limits.");
    agent.answers("None.");
    const fork = session.fork("s2");
    fork.says("And the tests.");
    fork.answers("Done.");
    const sum = createUsageSum();
    for (const each of [session, agent, fork]) for (const record of readLines(each).usage ?? []) sum.add(record);
    const billed = [session, agent, fork].flatMap((each) => each.billed);
    const total = (name: keyof (typeof billed)[number]) => billed.reduce((all, each) => all + each[name], 0);
    expect(sum.totals()).toMatchObject({
      answers: 9,
      uncached: total("input_tokens"),
      read: total("cache_read_input_tokens"),
      write5m: total("cache_creation_input_tokens"),
      output: total("output_tokens"),
    });
  });
});
