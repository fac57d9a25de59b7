import { describe, expect, it } from "vitest";
import { readSession } from "./read-session.ts";

const file = "rollout-1.jsonl";
const read = (...values: object[]) =>
  readSession(values.map((value) => JSON.stringify(value)).join("\n"), { file });

const timestamp = "2026-02-03T04:05:06.000Z";
const wrapped = (type: string, payload: object) => ({ timestamp, type, payload });
const item = (payload: object) => wrapped("response_item", payload);
const said = (text: string) => ({ type: "message", role: "user", content: [{ type: "input_text", text }] });
const reasoning = { type: "reasoning", id: "rs_1", summary: [], content: null, encrypted_content: "gAAAA" };
const call = { type: "function_call", name: "exec_command", arguments: '{"cmd":"ls"}', call_id: "call_1" };
const output = { type: "function_call_output", call_id: "call_1", output: "a.ts\nb.ts" };
const answer = { type: "message", role: "assistant", content: [{ type: "output_text", text: "two files" }] };

describe("a Codex session", () => {
  it("is its items in OpenAI's responses format, with their times", () => {
    const session = read(
      wrapped("session_meta", { id: "s", cwd: "/src", base_instructions: { text: "Be brief." } }),
      wrapped("turn_context", { model: "gpt-5-codex" }),
      item(said("look")),
      wrapped("event_msg", { type: "user_message", message: "look" }),
      item(reasoning),
      item(call),
      wrapped("event_msg", { type: "token_count", info: null }),
      item(output),
      item(answer),
    );
    expect(session).toEqual({
      file,
      source: "codex",
      format: "responses",
      model: "gpt-5-codex",
      system: "Be brief.",
      messages: [said("look"), reasoning, call, output, answer],
      times: Array.from({ length: 5 }, () => Date.parse(timestamp)),
      notes: ["left out: 2 event_msg lines"],
    });
  });

  it("may be of the older form: bare items after a head line", () => {
    const head = { id: "5973b6c0", timestamp, instructions: null };
    const session = read(head, { record_type: "state" }, said("look"), call, output, answer);
    expect(session).toEqual({
      file,
      source: "codex",
      format: "responses",
      messages: [said("look"), call, output, answer],
      notes: [],
    });
  });

  it("may be the oldest form, one JSON object", () => {
    const session = readSession(JSON.stringify({ session: { id: "s" }, items: [said("look"), answer] }), {
      file,
    });
    expect(session).toMatchObject({ format: "responses", messages: [said("look"), answer] });
  });

  it("keeps custom tools and unknown items, and leaves out snapshots of the working tree", () => {
    const patch = {
      type: "custom_tool_call",
      name: "apply_patch",
      input: "*** Begin Patch",
      call_id: "call_2",
    };
    const patched = { type: "custom_tool_call_output", call_id: "call_2", output: "Done!" };
    const search = {
      type: "web_search_call",
      status: "completed",
      action: { type: "search", query: "limits" },
    };
    const session = read(
      item(patch),
      item(patched),
      item(search),
      item({ type: "ghost_snapshot", ghost_commit: {} }),
    );
    expect(session.messages).toEqual([patch, patched, search]);
    expect(session.notes).toEqual(["left out: 1 ghost_snapshot item"]);
  });

  it("follows a compaction by what is new in the history that it leaves", () => {
    const summary = said("Summary: two files.");
    const session = read(
      item(said("look")),
      item(answer),
      wrapped("compacted", { message: "", replacement_history: [{ ...said("look"), id: "msg_1" }, summary] }),
      item(said("go on")),
    );
    expect(session.messages).toEqual([said("look"), answer, summary, said("go on")]);
    expect(session.notes).toEqual(["compactions: 1; what each one summed up stays before its summary"]);
  });

  it("follows a compaction without such a history by its summary", () => {
    const session = read(
      item(said("look")),
      wrapped("compacted", { message: "two files" }),
      item(said("go on")),
    );
    expect(session.messages).toEqual([said("look"), said("two files"), said("go on")]);
  });

  it("names the line of an item without a type", () => {
    expect(() => read(item(said("look")), item({ role: "user" }))).toThrow(
      expect.objectContaining({ code: "invalid_message", file, line: 2 }),
    );
  });

  it("names the line of what is no object", () => {
    const text = `${JSON.stringify(item(said("look")))}\n7\n${JSON.stringify(item(answer))}\n`;
    expect(() => readSession(text, { file })).toThrow(
      expect.objectContaining({ code: "invalid_message", file, line: 2 }),
    );
  });
});
