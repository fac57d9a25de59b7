import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type FormatName, formatNames, validateRequest } from "../../core/messages/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { fill } from "./exchanges.contract.ts";
import { createTrimmer } from "./trimmer.ts";

const counter = await createCounter("bytes/4");
const isDeep = process.env.PLIMSOLL_DEEP === "1";

type Write = (role: "user" | "assistant", text: string) => object;
const writers: Readonly<Record<FormatName, Write>> = {
  anthropic: (role, text) => ({ role, content: [{ type: "text", text }] }),
  openai: (role, text) => ({ role, content: text }),
  responses: (role, text) => ({
    ...{ type: "message", role },
    content: [{ type: role === "user" ? "input_text" : "output_text", text }],
  }),
  "ai-sdk": (role, text) => ({ role, content: [{ type: "text", text }] }),
  gemini: (role, text) => ({ role: role === "user" ? "user" : "model", parts: [{ text }] }),
  rfc: (role, text) => ({ role, content: [{ type: "text", text }] }),
};

const framed = (output: string): string => `<returncode>0</returncode>\n<output>\n${output}\n</output>`;
const step = (turn: number): string => `THOUGHT: step ${turn}.\n\n\`\`\`bash\ncat src/file_${turn}.ts\n\`\`\``;
const task = `Fix the bug. It prints:\n${framed("not a result")}`;

/** A session of an agent without tool calls. After some turns the person says something. */
function session(
  write: Write,
  turns: number,
  { sizeOf = (turn: number) => 300 + ((turn * 977) % 1_500) } = {},
): object[] {
  const messages = [write("user", task)];
  for (let turn = 0; turn < turns; turn++) {
    messages.push(write("assistant", step(turn)));
    const said =
      turn % 9 === 8
        ? `Mind this (${turn}):\n${framed("quoted")}`
        : framed(fill(`printed_line_${turn} of it\n`, sizeOf(turn)));
    messages.push(write("user", said));
  }
  return messages;
}

describe("a session of an agent without tool calls", () => {
  it.each(formatNames)("fits its window and stays valid in the format %s", async (format) => {
    const messages = session(writers[format], 90);
    const trimmer = await createTrimmer({ contextWindow: 6_000, reserve: 0, counter, format });
    let epochs = 0;
    let before: readonly object[] = [];
    for (let length = 1; length <= messages.length; length += 2) {
      const reduction = trimmer.reduce({ messages: messages.slice(0, length) });
      const { messages: sent, stats, overflow, isEpoch } = reduction;
      expect(overflow).toBeUndefined();
      expect(stats.after).toBeLessThanOrEqual(stats.budget);
      expect(validateRequest(sent, { format, strict: true })).toEqual([]);
      expect(sent[0]).toBe(messages[0]);
      const shown = JSON.stringify(sent);
      for (let turn = 8; 2 * turn + 2 < length; turn += 9) expect(shown).toContain(`Mind this (${turn})`);
      if (!isEpoch) expect(sent.slice(0, before.length)).toEqual(before);
      before = sent;
      epochs += Number(isEpoch);
    }
    expect(epochs).toBeGreaterThan(1);
    expect(epochs).toBeLessThan(20);
    expect(JSON.stringify(before)).toMatch(/\[trimmed: result, \d+ lines\]\\n\[trimmed earlier:/);
  });

  it("keeps the beginning and the end of the newest result if it alone is too large", async () => {
    const messages = session(writers.openai, 3, { sizeOf: (turn) => (turn === 2 ? 90_000 : 300) });
    const { messages: sent, overflow } = (await createTrimmer({ contextWindow: 6_000, reserve: 0, counter })).reduce({
      messages,
    });
    expect(overflow).toBeUndefined();
    expect(JSON.stringify(sent.at(-1))).toMatch(
      /<returncode>0.*printed_line_2 of it.*trimmed: \d+ characters.*<\/output>/,
    );
  });

  it("is left as it is by the policies of the RFC, which know no such results", async () => {
    const messages = session(writers.openai, 40);
    const trimmer = await createTrimmer({ contextWindow: 6_000, reserve: 0, counter, policy: "rfc", format: "openai" });
    const { messages: sent } = trimmer.reduce({ messages });
    expect(JSON.stringify(sent)).toContain("printed_line_0 of it");
  });

  it("still shows the format of messages that come later", async () => {
    const messages = session(writers.openai, 2);
    const trimmer = await createTrimmer({ contextWindow: 6_000, reserve: 0, counter });
    trimmer.reduce({ messages });
    const call = { id: "a", type: "function", function: { name: "run", arguments: "{}" } };
    const later = [
      ...messages,
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "a", content: "ok" },
    ];
    expect(trimmer.reduce({ messages: later }).messages).toEqual(later);
  });

  it("stays valid with any outputs, and every trimmer sends the same", async () => {
    const outputs = fc.array(fc.string({ maxLength: 3_000, unit: "binary" }), { minLength: 5, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(outputs, fc.constantFrom(...formatNames), async (texts, format) => {
        const write = writers[format];
        const messages = [
          write("user", task),
          ...texts.flatMap((text, turn) => [write("assistant", step(turn)), write("user", framed(text))]),
        ];
        const create = () => createTrimmer({ contextWindow: 3_000, reserve: 0, counter, format });
        const sent = (await create()).reduce({ messages }).messages;
        expect(validateRequest(sent, { format, strict: true })).toEqual([]);
        expect(sent[0]).toBe(messages[0]);
        expect((await create()).reduce({ messages }).messages).toEqual(sent);
      }),
      { numRuns: isDeep ? 300 : 15 },
    );
  });
});
