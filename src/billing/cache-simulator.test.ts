import { describe, expect, it } from "vitest";
import type { BillableBlock, BlockKind } from "./cache/prefix-chain.ts";
import type { Breakpoint } from "./cache/prompt-cache.ts";
import { type CacheSimulatorOptions, createCacheSimulator } from "./cache-simulator.ts";

const minute = 60_000;

/** `text` unless told; keys are the letters, so that `abc` begins like `abd`. */
function blocks(letters: string, tokens = 1_000, kind: BlockKind = "text"): BillableBlock[] {
  return [...letters].map((key) => ({ key, tokens, kind }));
}

function markers(...places: number[]): Breakpoint[] {
  return places.map((place) => ({ after: place, ttl: "5m" }));
}

function anthropic(options: Partial<CacheSimulatorOptions> = {}) {
  // A low minimum keeps the figures round.
  const prices = { "claude-sonnet-5": { min_prefix: 1_000 } };
  return createCacheSimulator({ provider: "anthropic", model: "claude-sonnet-5", prices, ...options });
}

describe("a cache with breakpoints", () => {
  it("bills a growing conversation: the first request written, then read, and only what is new written", () => {
    const { bill } = anthropic();
    expect(bill({ blocks: blocks("sab"), breakpoints: markers(0, 2) })).toEqual({
      read: 0,
      write5m: 3_000,
      write1h: 0,
      uncached: 0,
      total: 3_000,
      cost: 3_750,
      usd: 0.0075,
      isBreak: false,
      isAssumed: false,
    });
    const second = bill({ blocks: blocks("sabcd"), breakpoints: markers(0, 4) });
    // 3,000 · 0.1 + 2,000 · 1.25
    expect(second).toMatchObject({ read: 3_000, write5m: 2_000, uncached: 0, cost: 2_800, isBreak: false });
  });

  it("bills what follows the last breakpoint as plain input, and everything without one", () => {
    const { bill } = anthropic();
    expect(bill({ blocks: blocks("sab"), breakpoints: markers(1) })).toMatchObject({
      write5m: 2_000,
      uncached: 1_000,
    });
    expect(bill({ blocks: blocks("sab"), breakpoints: [] })).toMatchObject({
      read: 0,
      uncached: 3_000,
      cost: 3_000,
    });
  });

  it("falls back to the edit only where a breakpoint was, and calls that a break", () => {
    const marked = anthropic();
    marked.bill({ blocks: blocks("sabcd"), breakpoints: markers(0, 2, 4) });
    const kept = marked.bill({ blocks: blocks("sabXd"), breakpoints: markers(0, 2, 4) });
    expect(kept).toMatchObject({ read: 3_000, write5m: 2_000, isBreak: true });
    const unmarked = anthropic();
    unmarked.bill({ blocks: blocks("sabcd"), breakpoints: markers(0, 4) });
    const lost = unmarked.bill({ blocks: blocks("sabXd"), breakpoints: markers(0, 4) });
    expect(lost).toMatchObject({ read: 1_000, write5m: 4_000, isBreak: true });
  });

  it("writes nothing below the model's minimum", () => {
    const { bill } = anthropic({ model: "claude-opus-4-5" });
    const small = { blocks: blocks("abcd", 1_000), breakpoints: markers(3) };
    expect(bill(small)).toMatchObject({ write5m: 0, uncached: 4_000, cost: 4_000 });
    expect(bill(small)).toMatchObject({ read: 0, uncached: 4_000, isBreak: false });
    const enough = { blocks: blocks("abcd", 1_024), breakpoints: markers(2, 3) };
    expect(bill(enough)).toMatchObject({ write5m: 4_096, uncached: 0 });
    expect(bill(enough)).toMatchObject({ read: 4_096, cost: 409.6 });
  });

  it("charges mixed lifetimes as read up to A, an hour up to B, five minutes up to C", () => {
    const { bill } = anthropic();
    const breakpoints: Breakpoint[] = [
      { after: 0, ttl: "1h" },
      { after: 2, ttl: "1h" },
      { after: 4, ttl: "5m" },
    ];
    const first = bill({ blocks: blocks("sabcde"), breakpoints });
    expect(first).toMatchObject({ read: 0, write1h: 3_000, write5m: 2_000, uncached: 1_000 });
    expect(first.cost).toBe(3_000 * 2 + 2_000 * 1.25 + 1_000);
    const second = bill({ blocks: blocks("sXbcde"), breakpoints });
    expect(second).toMatchObject({ read: 1_000, write1h: 2_000, write5m: 2_000, uncached: 1_000 });
    const third = bill({ blocks: blocks("sXbcdef"), breakpoints: [{ after: 6, ttl: "5m" }] });
    expect(third).toMatchObject({ read: 5_000, write1h: 0, write5m: 2_000, uncached: 0 });
  });

  it("looks back 20 positions, the breakpoint being the first", () => {
    const letters = "abcdefghijklmnopqrstuvwxyz";
    for (const [appended, read] of [
      [19, 2_000],
      [20, 0],
    ] as const) {
      const { bill } = anthropic();
      bill({ blocks: blocks("ab"), breakpoints: markers(1) });
      const length = 2 + appended;
      const next = bill({ blocks: blocks(letters.slice(0, length)), breakpoints: markers(length - 1) });
      expect(next).toMatchObject({ read, isBreak: read === 0 });
    }
  });

  it("counts a run of tool calls or of results as one position, or each block when asked to", () => {
    const turn = [...blocks("cdefghijklm", 100, "tool_call"), ...blocks("nopqrstuvwx", 100, "tool_result")];
    const read = (lookbackMode: "positions" | "blocks") => {
      const { bill } = anthropic({ lookbackMode });
      bill({ blocks: blocks("ab"), breakpoints: markers(1) });
      return bill({ blocks: [...blocks("ab"), ...turn], breakpoints: markers(23) }).read;
    };
    expect(read("positions")).toBe(2_000);
    expect(read("blocks")).toBe(0);
  });

  it("searches from each breakpoint in turn", () => {
    const { bill } = anthropic();
    bill({ blocks: blocks("abc"), breakpoints: markers(2) });
    const far = blocks("abcdefghijklmnopqrstuvwxyz");
    expect(bill({ blocks: far, breakpoints: markers(10, 25) }).read).toBe(3_000);
  });

  it("keeps an entry for its lifetime from the start of the request that wrote or read it", () => {
    const { bill } = anthropic();
    const request = { blocks: blocks("ab"), breakpoints: markers(1) };
    bill({ ...request, startMs: 0, firstByteMs: 2 * minute });
    expect(bill({ ...request, startMs: 4.9 * minute }).read).toBe(2_000);
    expect(bill({ ...request, startMs: 9.8 * minute }).read).toBe(2_000);
    const late = bill({ ...request, startMs: 14.8 * minute });
    expect(late).toMatchObject({ read: 0, write5m: 2_000, isBreak: false });
    expect(bill({ ...request, startMs: 15 * minute }).read).toBe(2_000);
  });

  it("keeps an hour's entry for an hour, and for an hour more when a five-minute breakpoint reads it", () => {
    const { bill } = anthropic();
    bill({ blocks: blocks("ab"), breakpoints: [{ after: 1, ttl: "1h" }], startMs: 0 });
    expect(bill({ blocks: blocks("abc"), breakpoints: markers(2), startMs: 59 * minute }).read).toBe(2_000);
    expect(bill({ blocks: blocks("abd"), breakpoints: markers(2), startMs: 118 * minute }).read).toBe(2_000);
    expect(bill({ blocks: blocks("abe"), breakpoints: markers(2), startMs: 178 * minute }).read).toBe(0);
  });

  it("has an entry ready only when the answer has begun, so that requests sent together all write", () => {
    const { bill } = anthropic();
    const request = { blocks: blocks("ab"), breakpoints: markers(1) };
    expect(bill({ ...request, startMs: 0, firstByteMs: 900 }).write5m).toBe(2_000);
    expect(bill({ ...request, startMs: 10, firstByteMs: 500 })).toMatchObject({
      write5m: 2_000,
      isBreak: false,
    });
    expect(bill({ ...request, startMs: 499, firstByteMs: 800 }).write5m).toBe(2_000);
    expect(bill({ ...request, startMs: 500, firstByteMs: 600 }).read).toBe(2_000);
  });

  it("goes on from the answer before where no time is given", () => {
    const { bill } = anthropic();
    const request = { blocks: blocks("ab"), breakpoints: markers(1) };
    bill({ ...request, startMs: 100 * minute, firstByteMs: 101 * minute });
    expect(bill(request)).toMatchObject({ read: 2_000 });
    expect(bill({ ...request, startMs: 106 * minute })).toMatchObject({ read: 0 });
  });

  it("forgets everything when it is cold, which is no break", () => {
    const { bill } = anthropic();
    const request = { blocks: blocks("ab"), breakpoints: markers(0, 1) };
    bill(request);
    expect(bill({ ...request, isCold: true })).toMatchObject({ read: 0, write5m: 2_000, isBreak: false });
    expect(bill(request).read).toBe(2_000);
  });

  it("notices a block list that was changed in place", () => {
    const { bill } = anthropic();
    const list = blocks("abc");
    bill({ blocks: list, breakpoints: markers(0, 2) });
    list[1] = { key: "X", tokens: 1_000, kind: "text" };
    list.push(...blocks("d"));
    expect(bill({ blocks: list, breakpoints: markers(0, 3) })).toMatchObject({ read: 1_000, write5m: 3_000 });
    list.length = 2;
    expect(bill({ blocks: list, breakpoints: markers(0, 1) })).toMatchObject({ read: 1_000, total: 2_000 });
  });

  it("tells keys apart: numbers from their text, whole from broken, large from small", () => {
    const keys = [1, "1", 1.5, "1.5", 2 ** 32 + 1, -1, 2 ** 53, "", "a", "b", 0];
    const { bill } = anthropic();
    for (const key of keys) {
      const request = { blocks: [{ key, tokens: 2_000, kind: "text" as const }], breakpoints: markers(0) };
      expect(bill(request).read).toBe(0);
      expect(bill(request).read).toBe(2_000);
    }
  });

  it("bills a GPT-5.6 request by its breakpoints, whatever lies between", () => {
    const { bill } = createCacheSimulator({ provider: "openai", model: "gpt-5.6-terra" });
    const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ";
    expect(bill({ blocks: blocks("ab"), breakpoints: markers(1) })).toMatchObject({
      write5m: 2_000,
      cost: 2_500,
    });
    const far = bill({ blocks: blocks(letters), breakpoints: markers(35), startMs: 29 * minute });
    expect(far).toMatchObject({ read: 2_000, write5m: 34_000 });
    expect(bill({ blocks: blocks("aX"), breakpoints: markers(1) }).read).toBe(0);
  });

  it.each([
    [markers(0, 1, 2, 3, 4), "5 breakpoints cannot be billed"],
    [markers(5), "a breakpoint after block 5 of 5 cannot be billed"],
    [markers(-1), "after block -1"],
    [markers(0.5), "after block 0.5"],
    [
      [
        { after: 0, ttl: "5m" },
        { after: 1, ttl: "1h" },
      ],
      "a 1h breakpoint after block 1, behind a 5m one",
    ],
    [
      [
        { after: 1, ttl: "1h" },
        { after: 1, ttl: "5m" },
      ],
      "two lifetimes after block 1",
    ],
    [[{ after: 1, ttl: "2h" }], 'the lifetime "2h"'],
  ] as [Breakpoint[], string][])("refuses the breakpoints %j", (breakpoints, message) => {
    const request = { blocks: blocks("abcde"), breakpoints };
    expect(() => anthropic().bill(request)).toThrow(
      expect.objectContaining({ code: "invalid_argument", message: expect.stringContaining(message) }),
    );
  });

  it("takes one place twice as one breakpoint", () => {
    const request = { blocks: blocks("abcde"), breakpoints: markers(4, 0, 1, 2, 4, 4) };
    expect(anthropic().bill(request)).toMatchObject({ write5m: 5_000 });
  });

  it("refuses times, tokens and modes that make no sense", () => {
    const request = { blocks: blocks("a"), breakpoints: [] };
    const bill = (more: object) => () => anthropic().bill({ ...request, ...more });
    expect(bill({ startMs: Number.NaN })).toThrow("cannot be billed");
    expect(bill({ startMs: 5, firstByteMs: 4 })).toThrow("from 5 ms whose answer began at 4 ms");
    expect(bill({ blocks: blocks("ab", -1) })).toThrow("blocks[0].tokens is -1");
    expect(() => anthropic({ lookbackMode: "turns" as "blocks" })).toThrow('unknown lookback mode "turns"');
  });
});

describe("a cache that works by itself", () => {
  it("reads what any earlier request began with, in steps of 128 tokens from 1,024 on", () => {
    const { bill } = createCacheSimulator({ provider: "openai", model: "gpt-5" });
    expect(bill({ blocks: blocks("ab"), breakpoints: [] })).toMatchObject({
      read: 0,
      uncached: 2_000,
      cost: 2_000,
    });
    const next = bill({ blocks: blocks("abc"), breakpoints: [] });
    // 2,000 is 15 steps and 80 tokens.
    expect(next).toMatchObject({ read: 1_920, write5m: 0, uncached: 1_080, isBreak: false });
    expect(next.cost).toBeCloseTo(192 + 1_080);
    expect(bill({ blocks: blocks("aXc"), breakpoints: [] })).toMatchObject({ read: 0, isBreak: true });
    expect(bill({ blocks: blocks("abcd"), breakpoints: [] })).toMatchObject({ read: 2_944, isBreak: false });
  });

  it("forgets after its lifetime, and reads nothing of a request under way", () => {
    const { bill } = createCacheSimulator({ provider: "openai", model: "gpt-5" });
    const request = { blocks: blocks("abcd"), breakpoints: [] };
    bill({ ...request, startMs: 0, firstByteMs: 1_000 });
    expect(bill({ ...request, startMs: 999 })).toMatchObject({ read: 0, isBreak: false });
    expect(bill({ ...request, startMs: 1_000 }).read).toBe(3_968);
    expect(bill({ ...request, startMs: 1_000 + 60 * minute })).toMatchObject({ read: 0, isBreak: false });
    expect(bill({ ...request, isCold: true })).toMatchObject({ read: 0, isBreak: false });
  });

  it("remembers the last 16 requests", () => {
    const { bill } = createCacheSimulator({ provider: "openai", model: "gpt-5" });
    const send = (letter: string) => bill({ blocks: blocks(letter, 2_048), breakpoints: [] }).read;
    for (const letter of "abcdefghijklmnopq") expect(send(letter)).toBe(0);
    expect(send("b")).toBe(2_048);
    expect(send("a")).toBe(0);
  });

  it("says of Gemini that its hits are assumed", () => {
    const { bill, price } = createCacheSimulator({ provider: "gemini", model: "gemini-3.8-flash" });
    expect(price.rules.isAssumed).toBe(true);
    expect(bill({ blocks: blocks("abcde"), breakpoints: markers(1) })).toMatchObject({
      read: 0,
      isAssumed: false,
    });
    const next = bill({ blocks: blocks("abcdef"), breakpoints: [] });
    expect(next).toMatchObject({ read: 5_000, isAssumed: true });
  });
});

describe("speed", () => {
  it.each(["anthropic", "openai"] as const)(
    "bills 1,000 blocks with two more in at most 20 µs (%s)",
    (provider) => {
      const model = provider === "openai" ? "gpt-5" : "claude-sonnet-5";
      const { bill } = createCacheSimulator({ provider, model });
      const history: BillableBlock[] = Array.from({ length: 1_000 }, (_none, index) => ({
        key: `block ${index}`,
        tokens: 100,
        kind: index % 3 === 0 ? "tool_call" : "tool_result",
      }));
      let leastMs = Number.POSITIVE_INFINITY;
      // Again and again until it holds: other tests share the processor.
      for (let round = 0; round < 20 || (round < 400 && leastMs >= 0.02); round++) {
        const requests = Array.from({ length: 5 }, () => {
          history.push(
            { key: history.length, tokens: 100, kind: "text" },
            { key: "end", tokens: 9, kind: "text" },
          );
          return { blocks: [...history], breakpoints: markers(0, history.length - 1) };
        });
        const start = performance.now();
        for (const request of requests) bill(request);
        leastMs = Math.min(leastMs, (performance.now() - start) / requests.length);
      }
      expect(leastMs * 1_000).toBeLessThan(20);
    },
  );
});
