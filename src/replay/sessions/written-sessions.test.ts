/** Sessions written as the programs write them come back as they were. */
import { describe, expect, it } from "vitest";
import { convertMessages } from "../generate/convert/convert-messages.ts";
import { type GeneratedSession, generateSession } from "../generate/generate-session.ts";
import { readSession } from "./read-session.ts";

const seeds = Array.from({ length: process.env.PLIMSOLL_DEEP === "1" ? 40 : 6 }, (_each, index) => index + 1);
const jsonLines = (lines: readonly object[]) => `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`;
const iso = (timeMs: number) => new Date(timeMs).toISOString();

describe("a written session", () => {
  it.each(seeds)("of Claude Code comes back whole: seed %d", (seed) => {
    const session = generateSession({ seed, turns: 50 });
    const read = readSession(asClaudeCode(session), { file: "s.jsonl" });
    expect(read.messages).toEqual(session.messages);
    expect(read.times).toEqual(session.times);
    expect(read.model).toBe(session.model);
    expect(read.notes).toEqual([`left out: ${session.messages.length} progress lines`]);
  });

  it.each(seeds)("of Codex comes back whole: seed %d", (seed) => {
    const session = generateSession({ seed, turns: 50, profile: "search" });
    const items = convertMessages(session.messages, "responses");
    const lines = items.map((payload) => ({
      timestamp: iso(session.times[0]!),
      type: "response_item",
      payload,
    }));
    const head = { timestamp: iso(session.times[0]!), type: "session_meta", payload: { id: "s" } };
    expect(readSession(jsonLines([head, ...lines]), { file: "s.jsonl" }).messages).toEqual(items);
    expect(
      readSession(jsonLines([{ id: "s", timestamp: "t" }, ...items]), { file: "s.jsonl" }).messages,
    ).toEqual(items);
  });

  it("that was cut off anywhere in its last line loses that line alone", () => {
    const session = generateSession({ seed: 1, turns: 6 });
    const text = asClaudeCode(session).trimEnd();
    const lastLine = text.lastIndexOf("\n") + 1;
    const before = readSession(text.slice(0, lastLine), { file: "s.jsonl" }).messages;
    const step = Math.ceil((text.length - lastLine) / 40);
    for (let cut = lastLine + 1; cut < text.length; cut += step) {
      const read = readSession(text.slice(0, cut), { file: "s.jsonl" });
      expect(read.messages).toEqual(before);
      expect(read.notes[0]).toMatch(/^line \d+ is cut off and was left out$/);
    }
  });
});

/** A line a block, with lines of the program's own between messages. */
function asClaudeCode({ messages, times, model }: GeneratedSession): string {
  const lines = messages.flatMap(({ role, content }, at) => {
    const common = { isSidechain: false, sessionId: "s", timestamp: iso(times[at]!), type: role };
    const blocks = content.map((block, index) => {
      const answer = role === "assistant" ? { id: `msg_${at}`, model, usage: { input_tokens: 1 } } : {};
      return { ...common, uuid: `${at}-${index}`, message: { role, ...answer, content: [block] } };
    });
    return [{ ...common, type: "progress", uuid: `${at}-p` }, ...blocks];
  });
  return jsonLines(lines);
}
