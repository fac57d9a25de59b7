import { describe, expect, it } from "vitest";
import { countMessages, validateRequest } from "../../core/messages/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { assistant, exchange, exchanges, fill, user } from "./exchanges.contract.ts";
import { policyNames } from "./policies/policy.ts";
import { createTrimmer } from "./trimmer.ts";
import type { TrimmerOptions } from "./trimmer-options.ts";

const counter = await createCounter("bytes/4");
const create = (options: Partial<TrimmerOptions> = {}) =>
  createTrimmer({ contextWindow: 10_000, reserve: 0, counter, format: "anthropic", ...options });
const text = (value: unknown) => JSON.stringify(value);

describe.each(policyNames)("a client that rewinds, with %s", (policy) => {
  const messages = [user("go"), ...exchanges(60)];
  const question = user("another question");
  const sessionTo = async (length: number, options: Partial<TrimmerOptions> = {}) => {
    const trimmer = await create({ policy, ...options });
    for (let end = 1; end <= length; end += 2) trimmer.reduce({ messages: messages.slice(0, end) });
    return trimmer;
  };

  it("gets a history that fits unchanged, whatever was trimmed in the longer one", async () => {
    const trimmer = await sessionTo(121);
    const there = trimmer.reduce({ messages });
    expect(there.stats.epochs).toBeGreaterThan(0);
    const rewound = [...messages.slice(0, 17), assistant("ok"), question];
    const { messages: sent, isEpoch, stats, metadata } = trimmer.reduce({ messages: rewound });
    expect({ sent, isEpoch, metadata }).toEqual({ sent: rewound, isEpoch: false, metadata: {} });
    expect(stats).toMatchObject({ after: stats.before, kept: stats.before, boundary: 0, trimmed: [] });
  });

  it("gets what it got at that point, and later what the longer history got", async () => {
    const trimmer = await create({ policy });
    const before: string[] = [];
    for (let end = 1; end <= 121; end += 2)
      before.push(text(trimmer.reduce({ messages: messages.slice(0, end) }).messages));
    for (const end of [17, 121, 61, 99, 3, 121]) {
      const again = trimmer.reduce({ messages: messages.slice(0, end) });
      expect(again.isEpoch).toBe(false);
      expect(text(again.messages)).toBe(before[(end - 1) / 2]);
    }
  });

  it("gets the same in another process", async () => {
    const trimmer = await sessionTo(121);
    const forked = [...messages.slice(0, 17), assistant("ok"), question, ...exchanges(60, {}, 200)];
    for (let end = 19; end <= forked.length; end += 2) trimmer.reduce({ messages: forked.slice(0, end) });
    const checkpoint = JSON.parse(text(await trimmer.checkpoint()));
    for (const each of [messages, forked, forked.slice(0, 19), messages.slice(0, 41), messages]) {
      const resumed = await create({ policy, checkpoint });
      const reduction = resumed.reduce({ messages: JSON.parse(text(each)) });
      expect(reduction.isEpoch).toBe(false);
      expect(reduction).toEqual(trimmer.reduce({ messages: each }));
    }
  });

  it("adds nothing to the ledger when it alternates between known histories", async () => {
    const trimmer = await sessionTo(121);
    const forked = [...messages.slice(0, 17), assistant("ok"), question, ...exchanges(60, {}, 200)];
    const go = () => [forked, messages].map((each) => trimmer.reduce({ messages: each }).isEpoch);
    go();
    const { ledger } = await trimmer.checkpoint();
    for (let times = 0; times < 5; times++) expect(go()).toEqual([false, false]);
    expect((await trimmer.checkpoint()).ledger).toEqual(ledger);
  });
});

describe("a client that forks after what was trimmed", () => {
  const messages = [user("go"), ...exchanges(120)];

  it("keeps a history that fits, and adopts the known decisions once it does not", async () => {
    const trimmer = await create({ placeholders: "descriptive", policy: "gentle" });
    let end = 1;
    while (!trimmer.reduce({ messages: messages.slice(0, end) }).isEpoch) end += 2;
    const there = trimmer.reduce({ messages: messages.slice(0, end) });
    const fork = [...messages.slice(0, end - 2), assistant("Another way."), user("go")];
    const short = trimmer.reduce({ messages: fork });
    expect(short).toMatchObject({ isEpoch: false, messages: fork });
    const grown = [...fork, ...exchanges(3, {}, 200)];
    const { messages: sent, isEpoch } = trimmer.reduce({ messages: grown });
    expect(isEpoch).toBe(true);
    const shared = there.messages.length - 2;
    expect(text(sent.slice(0, shared))).toBe(text(there.messages.slice(0, shared)));
    expect(sent.slice(shared)).toEqual(grown.slice(end - 2));
    expect(validateRequest(sent, { strict: true })).toEqual([]);
  });

  it("adopts decisions from where they were made, not from an adopted copy", async () => {
    const trimmer = await create();
    let end = 1;
    while (!trimmer.reduce({ messages: messages.slice(0, end) }).isEpoch) end += 2;
    const shared = messages.slice(0, end - 2);
    for (let fork = 0; fork < 50; fork++)
      trimmer.reduce({ messages: [...shared, assistant(`Way ${fork}.`), user("go"), ...exchanges(3)] });
    const { epochs } = (await trimmer.checkpoint()).ledger;
    expect(epochs).toHaveLength(51);
    for (const { like, entries } of epochs.slice(1)) expect({ like, entries }).toEqual({ like: 0, entries: [] });
  });

  it("a hundred times leaves a ledger with each decision once", async () => {
    const trimmer = await create();
    for (let end = 1; end <= 101; end += 2) trimmer.reduce({ messages: messages.slice(0, end) });
    const entries = async () => (await trimmer.checkpoint()).ledger.epochs.flatMap(({ entries: each }) => each);
    const before = (await entries()).length;
    for (let fork = 0; fork < 100; fork++) {
      const way = [...messages.slice(0, 81), assistant(`Way ${fork}.`), user("go")];
      const grown = [...way, ...exchanges(40, {}, 1000 * fork)];
      for (let end = way.length; end <= grown.length && end < way.length + 20; end += 2)
        trimmer.reduce({ messages: grown.slice(0, end) });
    }
    const decided = (await entries()).map(({ id, chain, decision }) => JSON.stringify([id, chain, decision]));
    expect(new Set(decided).size).toBe(decided.length);
    expect(decided.length).toBeLessThan(2 * before);
  });
});

describe("a client that ends each request with a message for that call only", () => {
  it.each(policyNames)("sends the same beginning from epoch to epoch, with %s", async (policy) => {
    const trimmer = await create({ policy });
    const messages = [user("go")];
    let before: readonly object[] = [];
    let breaks = 0;
    const calls = 120;
    for (let call = 0; call < calls; call++) {
      const tail = user(`It is call ${call}.`);
      const sent = trimmer.reduce({ messages: [...messages, assistant("ok"), tail] }).messages.slice(0, -1);
      if (text(sent.slice(0, before.length)) !== text(before)) breaks++;
      before = sent.slice(0, -1);
      messages.push(...exchange(call));
    }
    const alone = await create({ policy });
    const plain = Array.from({ length: calls }, (_each, call) =>
      alone.reduce({ messages: [...messages.slice(0, 1 + 2 * call), assistant("ok"), user("now")] }),
    );
    expect(breaks).toBeGreaterThan(0);
    expect(breaks).toBeLessThanOrEqual(plain.filter(({ isEpoch }) => isEpoch).length + 1);
    expect((await trimmer.checkpoint()).ledger.epochs.length).toBeLessThan(4 * breaks);
  });
});

describe("a cache marker", () => {
  const marker = { cache_control: { type: "ephemeral" } };
  const plain = [user("go"), ...exchanges(50)];
  /** Puts a marker on the result in this message. */
  const markedAt = (at: number, messages: readonly object[]) =>
    messages.map((message, index) => {
      const { content } = message as { content: object[] };
      return index === at ? { ...message, content: content.map((block) => ({ ...block, ...marker })) } : message;
    });

  it("that moves does not affect the decisions on its message or on later ones", async () => {
    const trimmer = await create({ policy: "gentle" });
    const first = trimmer.reduce({ messages: markedAt(2, plain) });
    expect(first.stats.epochs).toBeGreaterThan(0);
    const grown = [...plain, ...exchange(50)];
    const second = trimmer.reduce({ messages: markedAt(102, grown) });
    expect(second.isEpoch).toBe(false);
    const unmarked = text(first.messages).replaceAll(`,${text(marker).slice(1, -1)}`, "");
    expect(text(second.messages.slice(0, first.messages.length))).toBe(unmarked);
    expect(text(second.messages.at(-1))).toContain("ephemeral");
  });

  it("does not affect how a checkpoint identifies a message", async () => {
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
    "keeps its decisions and is counted in its new form, in the %s format",
    async (format) => {
      const trimmer = await create({ format });
      const first = trimmer.reduce({ messages: asBlock(1) });
      expect(first.stats.epochs).toBeGreaterThan(0);
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
  it("among the newest is read again, also inside a new object", async () => {
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
      const { messages: sent, stats, overflow } = trimmer.reduce({ messages });
      expect(overflow?.largest[0]?.tokens).toBe(11_000);
      expect((await create({ policy })).reduce({ messages })).toMatchObject({ messages: sent, stats, overflow });
    },
  );
});

describe("a history that is parsed again on every call", () => {
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
