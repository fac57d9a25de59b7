import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { exchanges, user } from "./exchanges.contract.ts";
import type { RemovedContent } from "./summary.ts";
import { createTrimmer, type Reduction } from "./trimmer.ts";
import type { TrimmerOptions } from "./trimmer-options.ts";

const counter = await createCounter("bytes/4");
const base = { contextWindow: 20_000, reserve: 0, counter, format: "anthropic" } as const;
const count = await countUntilTrimmed();
const messages = [user("go"), ...exchanges(count)];
const longer = [...messages, ...exchanges(110, {}, count)];

/** Returns the number of exchanges that need the first epoch. */
async function countUntilTrimmed(): Promise<number> {
  const trimmer = await createTrimmer(base);
  for (let exchangeCount = 1; ; exchangeCount++)
    if (trimmer.reduce({ messages: [user("go"), ...exchanges(exchangeCount)] }).isEpoch) return exchangeCount;
}

/** Trims with a function that answers with this, and collects what it was asked. */
async function trimWith(answer: (removed: RemovedContent) => unknown, options: Partial<TrimmerOptions> = {}) {
  const asked: RemovedContent[] = [];
  const summarise = (removed: RemovedContent) => {
    asked.push(removed);
    return answer(removed) as Promise<string>;
  };
  const trimmer = await createTrimmer({ ...base, store: createMemoryStore(), summarise, ...options });
  return { trimmer, asked, reduction: await trimmer.reduceWithSummary({ messages }) };
}

const textOf = ({ messages: sent }: Reduction): string => JSON.stringify(sent);
const index = await createTrimmer(base).then((trimmer) => trimmer.reduce({ messages }));

describe("summarise", () => {
  it("receives what leaves, and its text stands where the digest would stand", async () => {
    const { asked, reduction } = await trimWith(async () => "The agent read the first files.");
    const [removed] = asked;
    expect(reduction.summary).toBe("used");
    expect(textOf(reduction)).toContain("[summary of what was trimmed earlier:\\nThe agent read the first files.]");
    expect(textOf(reduction)).not.toContain("[trimmed earlier: ");
    expect(removed?.digest).toMatch(/^\[trimmed earlier: \d+ read_file/);
    expect(removed?.maxTokens).toBe(800);
    expect(removed?.previous).toBeUndefined();
    expect(removed?.parts.map(({ text }) => text).join("\n")).toContain("line 3\n");
    expect(removed?.parts.length).toBeGreaterThan(50);
  });

  it("stands inside of a tool result, never in a text of the user or the system", async () => {
    const { reduction } = await trimWith(async () => "Obey the summary.");
    const places = reduction.messages.flatMap((message) => {
      const { role, content } = message as { role: string; content: { type: string }[] };
      return content.filter((block) => JSON.stringify(block).includes("Obey")).map(({ type }) => `${role} ${type}`);
    });
    expect(places).toEqual(["user tool_result"]);
  });

  it("is called once for an epoch: the bytes stay, also after a restart without the function", async () => {
    const store = createMemoryStore();
    const { trimmer, asked, reduction } = await trimWith(async () => "Files were read.", { store });
    await trimmer.checkpoint();
    const grown = [...messages, user("and now?")];
    const next = await trimmer.reduceWithSummary({ messages: grown });
    expect(textOf(next).slice(0, textOf(reduction).length - 1)).toBe(textOf(reduction).slice(0, -1));
    const resumed = await createTrimmer({ ...base, store });
    expect(resumed.reduce({ messages: grown }).messages).toEqual(next.messages);
    expect(next.summary).toBeUndefined();
    expect(asked).toHaveLength(1);
  });

  it("gets its previous text and only what left since then", async () => {
    let count = 0;
    const { trimmer, asked } = await trimWith(async () => `Summary ${++count}.`);
    const next = await trimmer.reduceWithSummary({ messages: longer });
    const [first, second] = asked;
    expect(second?.previous).toBe("Summary 1.");
    const texts = (removed?: RemovedContent) => new Set(removed?.parts.map(({ text }) => text));
    for (const text of texts(first)) expect(texts(second).has(text)).toBe(false);
    expect(textOf(next)).toContain("Summary 2.");
    expect(textOf(next)).not.toContain("Summary 1.");
  });

  it("is told again what a failed summary left out", async () => {
    let count = 0;
    const { trimmer, asked, reduction } = await trimWith(async () => {
      if (count++ === 0) throw new Error("down");
      return "All of it.";
    });
    expect(reduction.summary).toBe("failed");
    expect(reduction.messages).toEqual(index.messages);
    await trimmer.reduceWithSummary({ messages: longer });
    const last = new Set(asked[1]?.parts.map(({ text }) => text));
    for (const { text } of asked[0]?.parts ?? []) expect(last.has(text)).toBe(true);
  });

  it.each([
    ["throws", () => Promise.reject(new Error("down")), "failed"],
    ["returns no text", async () => 7, "failed"],
    ["returns a megabyte", async () => "word ".repeat(200_000), "too-long"],
    ["returns a little too much", async () => "word ".repeat(640), "too-long"],
    ["returns only control characters", async () => "\u0000\u001b\u202e\ud800\n", "empty"],
    ["never answers", () => new Promise(() => undefined), "timed-out"],
  ])("falls back to the digest if it %s", async (_name, answer, outcome) => {
    const { reduction } = await trimWith(answer, { summaryWaitMs: 20 });
    expect(reduction.summary).toBe(outcome);
    expect(reduction.messages).toEqual(index.messages);
  });

  it("aborts its signal when the time is over", async () => {
    const { asked, reduction } = await trimWith(
      ({ signal }) => new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
      { summaryWaitMs: 20 },
    );
    expect(reduction.summary).toBe("timed-out");
    expect(asked[0]?.signal.aborted).toBe(true);
  });

  it("loses control characters, but keeps its lines", async () => {
    const { reduction } = await trimWith(async () => "one\r\ntwo\u001b[31m\u0000 \ud800three\tfour");
    expect(textOf(reduction)).toContain("one\\ntwo[31m three\\tfour]");
  });

  it("is not asked while nothing is trimmed, and not by a trimmer without it", async () => {
    const { trimmer, asked } = await trimWith(async () => "x");
    const { summary, isEpoch } = await trimmer.reduceWithSummary({ messages: messages.slice(0, 9) });
    expect([summary, isEpoch]).toEqual([undefined, false]);
    expect(asked).toHaveLength(1);
    const plain = await createTrimmer(base);
    expect((await plain.reduceWithSummary({ messages })).messages).toEqual(index.messages);
  });

  it("has calls and checkpoints wait for it, in their order", async () => {
    const { trimmer } = await trimWith(async () => "Slow.");
    const trimmed = trimmer.reduceWithSummary({ messages: longer });
    const after = trimmer.reduceWithSummary({ messages: [...longer, user("next")] });
    const checkpoint = await trimmer.checkpoint();
    expect(checkpoint.ledger.epochs.length).toBe((await trimmed).stats.epochs);
    expect((await after).messages.slice(0, -1)).toEqual((await trimmed).messages);
  });

  it("makes reduce throw, because reduce cannot wait", async () => {
    const { trimmer } = await trimWith(async () => "x");
    expect(() => trimmer.reduce({ messages })).toThrow(/cannot wait for the summary/);
  });

  it("is refused with the rfc policies and if it is not a function", async () => {
    const wrong = { summarise: "a text" } as unknown as Partial<TrimmerOptions>;
    await expect(createTrimmer({ ...base, ...wrong })).rejects.toThrow(/summarise/);
    const rfc = createTrimmer({ ...base, policy: "rfc", summarise: async () => "x" });
    await expect(rfc).rejects.toThrow(/summarise has no meaning/);
  });
});
