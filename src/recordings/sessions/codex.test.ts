import { describe, expect, it } from "vitest";
import { readRecording } from "./index.ts";
import { createUsageSum } from "./recorded-usage.ts";

const file = "rollout-1.jsonl";
const read = (...values: object[]) => readRecording(values.map((value) => JSON.stringify(value)).join("\n"), { file });

const timestamp = "2026-02-03T04:05:06.000Z";
const wrapped = (type: string, payload: object) => ({ timestamp, type, payload });
const item = (payload: object) => wrapped("response_item", payload);
const said = (text: string) => ({ type: "message", role: "user", content: [{ type: "input_text", text }] });
const reasoning = { type: "reasoning", id: "rs_1", summary: [], content: null, encrypted_content: "gAAAA" };
const call = { type: "function_call", name: "exec_command", arguments: '{"cmd":"ls"}', call_id: "call_1" };
const output = { type: "function_call_output", call_id: "call_1", output: "a.ts\nb.ts" };
const answer = { type: "message", role: "assistant", content: [{ type: "output_text", text: "two files" }] };

describe("a Codex session", () => {
  it("has items in OpenAI's responses format, with their times", () => {
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
      answerIds: [undefined, "rs_1", undefined, undefined, undefined],
      notes: [],
    });
  });

  it("may have the older form: bare items after a head line", () => {
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

  it("may have the oldest form: one JSON object", () => {
    const session = readRecording(JSON.stringify({ session: { id: "s" }, items: [said("look"), answer] }), {
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
    const session = read(item(patch), item(patched), item(search), item({ type: "ghost_snapshot", ghost_commit: {} }));
    expect(session.messages).toEqual([patch, patched, search]);
    expect(session.notes).toEqual(["left out: 1 ghost_snapshot item"]);
  });

  it("starts a new stretch with the history that a compaction leaves", () => {
    const summary = said("Summary: two files.");
    const session = read(
      item(said("look")),
      item(answer),
      wrapped("compacted", { message: "", replacement_history: [{ ...said("look"), id: "msg_1" }, summary] }),
      item(said("go on")),
    );
    expect(session.earlier).toMatchObject([{ messages: [said("look"), answer] }]);
    expect(session.messages).toEqual([{ ...said("look"), id: "msg_1" }, summary, said("go on")]);
    expect(session.notes).toEqual(["compactions: 1; the requests after each start with its summary"]);
  });

  it("starts a new stretch with the summary of a compaction that recorded no history", () => {
    const session = read(item(said("look")), wrapped("compacted", { message: "two files" }), item(said("go on")));
    expect(session.earlier).toMatchObject([{ messages: [said("look")] }]);
    expect(session.messages).toEqual([said("two files"), said("go on")]);
  });

  it("starts a new stretch with what a rollback keeps", () => {
    const context = said("<environment_context>\n</environment_context>");
    const session = read(
      item(context),
      item(said("look")),
      item(answer),
      item(said("delete them")),
      item(answer),
      wrapped("event_msg", { type: "thread_rolled_back", num_turns: 1 }),
      item(said("keep them")),
      item(answer),
    );
    expect(session.earlier).toMatchObject([{ messages: [context, said("look"), answer, said("delete them"), answer] }]);
    expect(session).toMatchObject({ messages: [context, said("look"), answer, said("keep them"), answer] });
    expect(session.answersFrom).toBe(3);
    expect(session.notes).toEqual(["rewinds: 1; each is replayed as a branch of its own"]);
  });

  it("has the usage of each answer, its own tools, and the name of the session that it forks", () => {
    const tokens = { input_tokens: 900, cached_input_tokens: 640, cache_write_input_tokens: 0, output_tokens: 20 };
    const session = read(
      wrapped("session_meta", {
        ...{ id: "s2", forked_from_id: "s1", history_mode: "paginated" },
        dynamic_tools: [{ name: "deploy", description: "Deploys.", inputSchema: { type: "object" } }],
      }),
      wrapped("turn_context", { model: "gpt-5-codex" }),
      item(said("look")),
      item(answer),
      wrapped("token_usage_record", { response_id: "resp_1", usage: tokens }),
      wrapped("token_usage_record", { response_id: "resp_1", usage: tokens }),
    );
    const sum = createUsageSum();
    for (const record of session.usage ?? []) sum.add(record);
    expect(sum.totals()).toMatchObject({ answers: 1, read: 640, uncached: 260, output: 20 });
    expect(session.usage?.[0]?.model).toBe("gpt-5-codex");
    expect(session.tools).toEqual([
      { type: "function", name: "deploy", description: "Deploys.", parameters: { type: "object" } },
    ]);
    expect(session.notes).toEqual(["this is a fork of s1; the messages before the fork are in that session's file"]);
  });

  it("names the line of an item without a type", () => {
    expect(() => read(item(said("look")), item({ role: "user" }))).toThrow(
      expect.objectContaining({ code: "invalid_message", file, line: 2 }),
    );
  });

  it("names the line that is not an object", () => {
    const text = `${JSON.stringify(item(said("look")))}\n7\n${JSON.stringify(item(answer))}\n`;
    expect(() => readRecording(text, { file })).toThrow(
      expect.objectContaining({ code: "invalid_message", file, line: 2 }),
    );
  });
});
