import { describe, expect, it } from "vitest";
import { readSession } from "./read-session.ts";

const file = "0c1d.jsonl";
const read = (...values: object[]) =>
  readSession(values.map((value) => JSON.stringify(value)).join("\n"), { file });

let next = 0;
/** A line as the program writes it: ids, a time, and whatever the test adds. */
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
const said = (content: unknown, fields: object = {}) =>
  line("user", { message: { role: "user", content }, ...fields });
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
    expect(session.notes).toEqual(["left out: 1 file-history-snapshot line"]);
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

  it("keeps a person's text apart from results and from other text", () => {
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

  it("keeps answers without an id apart", () => {
    const block = { type: "text", text: "yes" };
    const bare = () => line("assistant", { message: { role: "assistant", content: [block] } });
    expect(read(said("look"), bare(), bare()).messages.length).toBe(3);
  });

  it("has one time a message: an answer's first line, the last one of results", () => {
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

  it("leaves out sub-agents, errors of the API, repeated lines and the program's own, and says so", () => {
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
      answer("m3", { type: "text", text: "done" }),
    );
    expect(session.messages.length).toBe(2);
    expect(session.notes).toEqual([
      "left out: 1 API error, 1 line of sub-agents, 2 progress lines, 1 repeated line, 1 summary line, 1 system line",
    ]);
  });

  it("drops copies of a result and of a call, not a second, different result", () => {
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

  it("keeps what a compaction summed up, and injected user text", () => {
    const session = read(
      said("look"),
      answer("m1", { type: "text", text: "done" }),
      line("system", { subtype: "compact_boundary" }),
      said("A summary.", { isCompactSummary: true, isVisibleInTranscriptOnly: true }),
      said("A reminder.", { isMeta: true }),
    );
    expect(session.messages.length).toBe(4);
    expect(session.notes[0]).toBe("compactions: 1; what each one summed up stays before its summary");
  });

  it("reads a sub-agent's own file", () => {
    const side = { isSidechain: true };
    const session = read(said("look", side), answer("m1", { type: "text", text: "done" }, side));
    expect(session.messages.length).toBe(2);
  });

  it("takes no model from an answer that the program made up", () => {
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
