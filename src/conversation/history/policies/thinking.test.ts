import { describe, expect, it } from "vitest";
import { createCounter } from "../../../core/tokens/index.ts";
import { assistant, exchange, exchanges, user } from "../exchanges.contract.ts";
import { createTrimmer } from "../trimmer.ts";

const counter = await createCounter("bytes/4");
const binding = "claude-opus-5-5";
const create = (model: string, contextWindow = 12_000) =>
  createTrimmer({ contextWindow, reserve: 0, counter, format: "anthropic", model });

interface Block {
  readonly type: string;
  readonly thinking?: string;
}
/** The blocks of thinking of each message. */
const thinkingOf = (messages: readonly object[]): readonly Block[] =>
  messages.flatMap((message) =>
    (message as { content: readonly Block[] }).content.filter(({ type }) => type === "thinking"),
  );

describe("thinking", () => {
  const options = { thinking: 400, result: 800 };
  const messages = [user("go"), ...exchanges(60, options)];

  it("is the caller's own block with its signature, or is dropped", async () => {
    const { messages: sent } = (await create("claude-opus-4-5")).reduce({ messages });
    const own = new Set(thinkingOf(messages));
    expect(thinkingOf(sent).length).toBeGreaterThan(0);
    expect(thinkingOf(sent).length).toBeLessThan(own.size);
    expect(thinkingOf(sent).filter((block) => !own.has(block))).toEqual([]);
  });

  it("of the turn in progress stays while anything else can be trimmed", async () => {
    const long = [user("go"), ...exchanges(3, options), ...exchange(3, { thinking: 9_000, result: 60_000 })];
    const { messages: sent, overflow } = (await create("claude-opus-4-5", 4_000)).reduce({ messages: long });
    expect(overflow).toBeUndefined();
    expect(thinkingOf(sent)).toEqual(thinkingOf(long.slice(-2)));
  });

  it("of the turn in progress stays when its input is trimmed", async () => {
    const long = [user("go"), ...exchange(0, { thinking: 9_000, input: 6_000, result: 40 })];
    const { messages: sent, overflow } = (await create("claude-opus-4-5", 3_400)).reduce({ messages: long });
    expect(overflow).toBeUndefined();
    expect(thinkingOf(sent)).toEqual(thinkingOf(long));
  });

  it("is dropped last, if nothing else is left", async () => {
    const long = [user("go"), ...exchange(0, { thinking: 9_000, result: 60_000 })];
    const { messages: sent, overflow } = (await create("claude-opus-4-5", 1_500)).reduce({ messages: long });
    expect(overflow).toBeUndefined();
    expect(thinkingOf(sent)).toEqual([]);
  });

  it("never leaves a message empty", async () => {
    const silent = { role: "assistant", content: [{ type: "thinking", thinking: "hm", signature: "s" }] };
    const long = [user("go"), silent, user("well?"), ...exchanges(60, options)];
    const { messages: sent } = (await create(binding)).reduce({ messages: long });
    expect(sent[1]).toEqual({ role: "assistant", content: [{ type: "text", text: "[trimmed]" }] });
  });
});

describe("thinking that is bound to what comes before it", () => {
  const options = { thinking: 400, result: 800 };

  it("is dropped after an edit at once, and stays if nothing before it changed", async () => {
    const early = exchange(0, { thinking: 400, result: 30, tool: "todo" });
    const messages = [user("go"), ...early];
    const trimmer = await createTrimmer({
      ...{ contextWindow: 12_000, reserve: 0, counter, format: "anthropic", model: binding },
      isPinned: (message) => early.includes(message),
    });
    let reduction = trimmer.reduce({ messages });
    for (let index = 1; !reduction.isEpoch; index++) {
      messages.push(...exchange(index, options));
      reduction = trimmer.reduce({ messages });
    }
    expect(thinkingOf(reduction.messages)).toEqual(thinkingOf(early));
  });

  it("stays dropped, and new thinking stays until the next epoch", async () => {
    const trimmer = await create(binding);
    const messages = [user("go")];
    const gone = new Set<Block>();
    for (let index = 0; index < 120; index++) {
      messages.push(...exchange(index, options));
      const { messages: sent, isEpoch } = trimmer.reduce({ messages });
      const left = thinkingOf(sent);
      const lost = thinkingOf(messages).filter((block) => !left.includes(block));
      if (!isEpoch) expect(lost).toEqual([...gone]);
      for (const block of lost) gone.add(block);
      expect([...gone]).toEqual(lost);
    }
    expect((await trimmer.checkpoint()).ledger.epochs.length).toBeGreaterThan(2);
    expect(gone.size).toBeGreaterThan(60);
  });

  it("stays if the conversation was never edited", async () => {
    const messages = [user("go"), ...exchanges(8, options), assistant("Done."), user("thanks")];
    const { messages: sent } = (await create(binding)).reduce({ messages });
    expect(thinkingOf(sent).length).toBe(8);
  });

  it("goes if a model that does not bind it has left it after an edit", async () => {
    const messages = [user("go")];
    const older = await create("claude-opus-5");
    for (let isEpoch = false; !isEpoch; ) {
      messages.push(...exchange(messages.length, options));
      ({ isEpoch } = older.reduce({ messages }));
    }
    expect(thinkingOf(older.reduce({ messages }).messages).length).toBeGreaterThan(0);
    const checkpoint = await older.checkpoint();
    const trimmer = await createTrimmer({
      ...{ contextWindow: 12_000, reserve: 0, counter, format: "anthropic", model: binding, checkpoint },
    });
    const longer = [...messages, assistant("Done."), user("thanks")];
    const { messages: sent, isEpoch } = trimmer.reduce({ messages: longer });
    expect(isEpoch).toBe(true);
    expect(thinkingOf(sent)).toEqual([]);
    expect(trimmer.reduce({ messages: [...longer, ...exchange(600, options)] }).isEpoch).toBe(false);
  });

  it.each(["rfc", "rfc-headroom"] as const)(
    "stays valid before %s counts: the messages go out as they came in",
    async (policy) => {
      const messages = [
        user("<checkpoint_id>7</checkpoint_id> go"),
        user("now"),
        ...exchanges(3, options),
        assistant("Done."),
        user("thanks"),
      ];
      const send = async (model: string) =>
        (await createTrimmer({ contextWindow: 100_000, counter, format: "anthropic", model, policy })).reduce({
          messages,
        }).messages;
      expect(await send(binding)).toEqual(messages);
      expect((await send("claude-opus-5")).length).toBe(messages.length - 1);
    },
  );
});
