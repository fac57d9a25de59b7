import { describe, expect, it } from "vitest";
import { countMessages, validateRequest } from "../messages/index.ts";
import { createCounter } from "../tokens/index.ts";
import { assistant, exchange, exchanges, fill, user } from "./exchanges.contract.ts";
import { createTrimmer } from "./trimmer.ts";
import type { TrimmerOptions } from "./trimmer-options.ts";

const counter = await createCounter("bytes/4");
const create = (options: Partial<TrimmerOptions> = {}) =>
  createTrimmer({ contextWindow: 10_000, reserve: 0, counter, format: "anthropic", ...options });
const text = (value: unknown) => JSON.stringify(value);

describe("a client that rewinds", () => {
  const messages = [user("go"), ...exchanges(120)];

  it("into an exchange that is gone finds it as it was before that", async () => {
    const trimmer = await create({ placeholders: "descriptive" });
    const before = trimmer.reduce({ messages: messages.slice(0, 91) });
    const after = trimmer.reduce({ messages });
    // The first exchange that was there after one epoch, and is gone after a later one.
    const callOf = (index: number) => `"id":"call_${index}"`;
    const gone = exchanges(120).findIndex((_each, index) => {
      return text(before.messages).includes(callOf(index)) && !text(after.messages).includes(callOf(index));
    });
    expect(gone).toBeGreaterThan(0);
    const again = {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: `call_${gone}`, content: "other" }],
    };
    const retried = [...messages.slice(0, 2 + 2 * gone), again];
    const { messages: sent, isEpoch } = trimmer.reduce({ messages: retried });
    expect(isEpoch).toBe(false);
    expect(sent.at(-1)).toBe(again);
    expect(text(sent.at(-2))).toContain(callOf(gone));
    expect(validateRequest(sent, { strict: true })).toEqual([]);
    expect(text(trimmer.reduce({ messages }).messages)).toBe(text(after.messages));
  });

  it("and comes back gets the same decisions back, and no epoch", async () => {
    const trimmer = await create();
    const there = trimmer.reduce({ messages });
    for (const length of [101, 7, 0, 60]) trimmer.reduce({ messages: messages.slice(0, length) });
    const back = trimmer.reduce({ messages });
    expect(back.isEpoch).toBe(false);
    expect(text(back.messages)).toBe(text(there.messages));
    expect(back.stats).toEqual(there.stats);
  });

  it("and takes another way keeps the decisions on what both have, and on no other message", async () => {
    const trimmer = await create({ policy: "gentle" });
    const there = trimmer.reduce({ messages });
    const fork = [...messages.slice(0, 31), assistant("Another way."), user("go"), ...exchanges(4, {}, 200)];
    const { messages: sent, isEpoch } = trimmer.reduce({ messages: fork });
    expect(isEpoch).toBe(false);
    const shared = there.stats.trimmed.filter((index) => index < 31);
    expect(shared.length).toBeGreaterThan(5);
    expect(sent.slice(-10)).toEqual(fork.slice(-10));
    expect(validateRequest(sent, { strict: true })).toEqual([]);
  });
});

describe("a cache marker", () => {
  const marker = { cache_control: { type: "ephemeral" } };
  const plain = [user("go"), ...exchanges(60)];
  /** A marker on the result that this message holds. */
  const markedAt = (at: number, messages: readonly object[]) =>
    messages.map((message, index) => {
      const { content } = message as { content: object[] };
      return index === at
        ? { ...message, content: content.map((block) => ({ ...block, ...marker })) }
        : message;
    });

  it("that moves on leaves the decisions on its message, and on all behind it, in force", async () => {
    const trimmer = await create({ policy: "gentle" });
    const first = trimmer.reduce({ messages: markedAt(2, plain) });
    expect(first.isEpoch).toBe(true);
    const grown = [...plain, ...exchange(60)];
    const second = trimmer.reduce({ messages: markedAt(122, grown) });
    expect(second.isEpoch).toBe(false);
    const unmarked = text(first.messages).replaceAll(`,${text(marker).slice(1, -1)}`, "");
    expect(text(second.messages.slice(0, first.messages.length))).toBe(unmarked);
    expect(text(second.messages.at(-1))).toContain("ephemeral");
  });

  it("is no part of what a checkpoint knows a message by", async () => {
    const trimmer = await create();
    trimmer.reduce({ messages: markedAt(2, plain) });
    const resumed = await create({ checkpoint: await trimmer.checkpoint() });
    const moved = { messages: markedAt(40, plain) };
    const reduction = resumed.reduce(moved);
    expect(reduction).toEqual(trimmer.reduce(moved));
    expect(reduction.isEpoch).toBe(false);
  });
});

describe("a plain text that becomes a block, as for a cache marker", () => {
  const chat = Array.from({ length: 60 }, (_each, index) => [
    { role: "user", content: `question ${index}` },
    { role: "assistant", content: fill(`answer ${index} `, 900) },
  ]).flat();
  const asBlock = (at: number) =>
    chat.map((message, index) =>
      index === at ? { ...message, content: [{ type: "text", text: message.content }] } : message,
    );

  it.each(["anthropic", "rfc", "ai-sdk"] as const)(
    "keeps its decisions and is counted as it is, in the %s format",
    async (format) => {
      const trimmer = await create({ format });
      const first = trimmer.reduce({ messages: asBlock(1) });
      expect(first.isEpoch).toBe(true);
      for (const at of [chat.length - 1, 31, 0]) {
        const { messages: sent, isEpoch, stats } = trimmer.reduce({ messages: asBlock(at) });
        expect(isEpoch).toBe(false);
        expect(stats.trimmed).toEqual(first.stats.trimmed);
        expect(stats.after).toBe(countMessages(sent, counter, { format }));
      }
    },
  );
});

describe("a message that is edited in place", () => {
  it("among the newest is read again, also inside of a new object", async () => {
    const trimmer = await create();
    const content = [{ type: "text", text: "first" }];
    const messages = [user("go"), ...exchanges(3), assistant("ok"), { role: "user", content }];
    trimmer.reduce({ messages });
    content.push({ type: "text", text: fill("second ", 4_000) });
    const edited = messages.map((message) => ({ ...message }));
    const { messages: sent, stats } = trimmer.reduce({ messages: edited });
    expect(text(sent)).toContain("second");
    expect(stats).toEqual((await create()).reduce({ messages: edited }).stats);
  });

  it.each(["economic", "rfc"] as const)(
    "among the newest is read again with %s, however many follow it",
    async (policy) => {
      const trimmer = await create({ policy });
      const block = { type: "text", text: "first" };
      const messages = [user("go"), ...exchanges(3), assistant("ok"), { role: "user", content: [block] }];
      trimmer.reduce({ messages });
      block.text = fill("second ", 44_000);
      messages.push(assistant("ok"), user("go on"), ...exchanges(20, { result: 10 }, 100));
      const reduction = trimmer.reduce({ messages });
      expect(reduction.overflow?.largest[0]?.tokens).toBe(11_000);
      expect(reduction).toEqual((await create({ policy })).reduce({ messages }));
    },
  );
});

describe("a history that is parsed anew on every call", () => {
  const marked = {
    type: "text",
    text: "<checkpoint_id>c1</checkpoint_id> begin",
    cache_control: { type: "ephemeral" },
  };
  const twice = [user("and"), user("then")];
  const all = [
    { role: "user", content: [marked] },
    ...exchanges(30),
    assistant("ok"),
    ...twice,
    ...exchanges(30, {}, 30),
  ];

  it.each(["economic", "rfc", "rfc-headroom"] as const)(
    "goes out with %s as if it were the same objects, the caller's own of this call where nothing changed",
    async (policy) => {
      const [trimmer, same] = [await create({ policy }), await create({ policy })];
      for (let length = 1; length <= all.length; length += 2) {
        const messages = JSON.parse(text(all.slice(0, length))) as object[];
        const reduction = trimmer.reduce({ messages });
        expect(reduction).toEqual(same.reduce({ messages: all.slice(0, length) }));
        const own = new Set(messages);
        const kept = reduction.messages.filter((message) => own.has(message)).length;
        const texts = new Set(messages.map(text));
        expect(kept).toBe(reduction.messages.filter((message) => texts.has(text(message))).length);
      }
    },
  );
});
