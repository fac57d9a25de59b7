import { describe, expect, it } from "vitest";
import { validateRequest } from "../../messages/index.ts";
import { createCounter } from "../../tokens/index.ts";
import { assistant, exchange, exchanges, fill, user } from "../exchanges.contract.ts";
import { createTrimmer } from "../trimmer.ts";
import type { TrimmerOptions } from "../trimmer-options.ts";

const counter = await createCounter("bytes/4");
const create = (options: Partial<TrimmerOptions>) =>
  createTrimmer({ contextWindow: 10_000, reserve: 0, counter, format: "anthropic", keep: 4, ...options });
const text = (value: unknown) => JSON.stringify(value);

/** Where the boundary is after each turn, when more turns are to be kept than fit. */
async function boundaries(policy: "rfc" | "rfc-headroom", turns: number): Promise<number[]> {
  const trimmer = await create({ policy, keep: 50 });
  const messages = [user("go")];
  return Array.from({ length: turns }, (_each, index) => {
    messages.push(...exchange(index));
    return trimmer.reduce({ messages }).stats.boundary;
  });
}

const moves = (values: readonly number[]) =>
  values.filter((value, index) => index > 0 && value !== values[index - 1]).length;

describe("rfc-headroom", () => {
  it("lets the boundary rest for many turns where rfc moves it on each", async () => {
    const [plain, headroom] = [await boundaries("rfc", 90), await boundaries("rfc-headroom", 90)];
    expect(moves(headroom)).toBeGreaterThan(1);
    expect(moves(headroom)).toBeLessThan(moves(plain) / 3);
    for (const values of [plain, headroom]) expect(values).toEqual([...values].sort((a, b) => a - b));
  });

  it("leaves a message alone that the placeholder would make longer, and rfc does not", async () => {
    const messages = [user("go"), assistant("ok"), user("more"), ...exchanges(60)];
    const headroom = (await create({ policy: "rfc-headroom" })).reduce({ messages });
    const plain = (await create({ policy: "rfc" })).reduce({ messages });
    expect(headroom.messages[1]).toBe(messages[1]);
    expect(text(plain.messages[1])).toContain("[trimmed]");
    expect(text(headroom.messages[4])).toContain("[trimmed]");
  });
});

describe.each(["rfc", "rfc-headroom"] as const)("%s over messages of Anthropic", (policy) => {
  const long = exchanges(60, { thinking: 200, text: 200, said: "and mind the tests" });
  const picture = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } };
  const shown = { role: "user", content: [picture, { type: "text", text: "like this" }] };
  const messages = [shown, ...long];

  it("trims results where they stand, and not what the person says beside them", async () => {
    const { messages: sent } = (await create({ policy })).reduce({ messages });
    expect(sent[0]).toBe(shown);
    expect(sent[2]).toEqual({
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "call_0", content: "[trimmed]" },
        { type: "text", text: "and mind the tests" },
      ],
    });
  });

  it("trims the assistant's text, drops its thinking and keeps its calls whole", async () => {
    const { messages: sent } = (await create({ policy })).reduce({ messages });
    const [, , call] = (long[0] as { content: object[] }).content;
    expect(sent[1]).toEqual({ role: "assistant", content: [{ type: "text", text: "[trimmed]" }, call] });
    expect(validateRequest(sent, { strict: true })).toEqual([]);
  });

  it("says by how much a history is too large that holds nothing more to trim", async () => {
    const only = [user(fill("plan ", 60_000)), ...exchanges(3)];
    const { overflow, stats } = (await create({ policy })).reduce({ messages: only });
    expect(overflow).toMatchObject({
      limit: stats.threshold,
      largest: [{ path: "messages[0].content[0]", kind: "text" }, {}, {}],
    });
    expect(overflow!.tokens).toBeGreaterThan(17_000);
  });

  it("merges neighbours of one role, drops repeated results and removes checkpoint tags", async () => {
    const [call, answer] = exchange(0);
    const again = { type: "tool_result", tool_use_id: "call_0", content: "the last one" };
    const input = [
      user("go"),
      user("on <checkpoint_id>7</checkpoint_id>"),
      call!,
      answer!,
      { role: "user", content: [again] },
    ];
    const { messages: sent, isEpoch } = (await create({ policy })).reduce({ messages: input });
    expect(isEpoch).toBe(false);
    expect(sent).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "go" },
          { type: "text", text: "on" },
        ],
      },
      call,
      { role: "user", content: [again] },
    ]);
    expect(sent[1]).toBe(call);
  });

  it("sees what a client edits in place inside a merged message", async () => {
    const trimmer = await create({ policy });
    const edited = { role: "user", content: [{ type: "text", text: "first" }] };
    const input = [user("go"), edited, assistant("ok"), user("more")];
    trimmer.reduce({ messages: input });
    edited.content.push({ type: "text", text: fill("second ", 400) });
    const { messages: sent, stats } = trimmer.reduce({ messages: input });
    expect(text(sent)).toContain("second");
    expect(stats.after).toBeGreaterThan(100);
  });
});
