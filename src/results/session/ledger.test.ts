import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type LedgerTier, leastAllocation, ledgerTiers } from "../../core/budget/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { createLedger, type Ledger } from "./ledger.ts";

/** A ledger as an agent has it, with a system prompt of 8,000 tokens. */
function startedLedger(): Ledger {
  const ledger = createLedger();
  ledger.record("system", 8_000);
  return ledger;
}

it("counts like chars/3.5 if that counter is chosen", async () => {
  const { count } = await createCounter("chars/3.5");
  const sizes = [0, 7, 8, 35, 36, 3_500].map((length) => count("x".repeat(length)));
  expect(sizes).toEqual([0, 2, 3, 10, 11, 1_000]);
});

describe("the account", () => {
  it("starts with the whole total remaining", () => {
    expect(createLedger().remaining()).toBe(100_000);
    expect(createLedger().used()).toEqual({
      system: 0,
      history: 0,
      tool_results: 0,
      user: 0,
      response: 30_000,
    });
  });

  it("has 62,000 available after a system prompt of 8,000 and the response reserve", () => {
    expect(startedLedger().available()).toBe(62_000);
    expect(startedLedger().remaining()).toBe(92_000);
  });

  it("replaces the number of a tier, but adds up tool results", () => {
    const ledger = createLedger();
    for (const tier of ["system", "history", "user", "tool_results"] as const) {
      ledger.record(tier, 1_000);
      ledger.record(tier, 500);
    }
    expect(ledger.used()).toEqual({
      system: 500,
      history: 500,
      user: 500,
      tool_results: 1_500,
      response: 30_000,
    });
    expect(ledger.remaining()).toBe(97_500);
    expect(ledger.available()).toBe(67_000);
  });

  it("is negative if more was recorded than the total, and shows that as nothing left", () => {
    const ledger = startedLedger();
    ledger.record("tool_results", 95_000);
    expect(ledger.remaining()).toBe(-3_000);
    expect(ledger.available()).toBe(-33_000);
    expect(ledger.warning()).toContain("~0k tokens remaining");
    expect(ledger.summary()).toMatch(/^Budget: 0k of 100k left/);
    expect(ledger.forModel()).toMatchObject({ remaining: 0, available: 0 });
  });

  it.each([
    ["option", () => createLedger({ totals: 1 } as object)],
    ["tier", () => createLedger({ tiers: { tools: 1 } as object })],
    ["tier", () => createLedger().record("tools" as "user", 1)],
    ["number of tokens", () => createLedger().record("user", 1.5)],
    ["negative number", () => createLedger().addResult("r1", -1)],
    ["total", () => createLedger({ total: 0 })],
    ["share of a call that no error fits", () => createLedger({ perToolCall: 100 })],
    ["share of a tool", () => createLedger({ tools: { read_file: 0 } })],
  ])("refuses a wrong %s", (_, action) => {
    expect(action).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });
});

describe("warnings", () => {
  const withTools = (tokens: number): string | undefined => {
    const ledger = startedLedger();
    ledger.record("tool_results", tokens);
    return ledger.warning();
  };

  it("start below the threshold, with the same sentence however little is left", () => {
    expect(withTools(42_000)).toBeUndefined();
    expect(withTools(42_001)).toContain("Budget Alert: ~19k");
    expect(withTools(45_000)).toBe("[Budget Alert: ~17k tokens remaining. Consider summarizing or completing soon.]");
    expect(withTools(55_000)).toBe("[Budget Alert: ~7k tokens remaining. Consider summarizing or completing soon.]");
  });

  it("always have the current number", () => {
    const ledger = startedLedger();
    ledger.record("tool_results", 45_000);
    expect(ledger.warning()).toContain("~17k");
    expect(ledger.warning(2_000)).toContain("~15k");
    ledger.record("tool_results", 3_000);
    expect(ledger.warning()).toContain("~14k");
    ledger.beginTurn();
    expect(ledger.warning()).toBeUndefined();
  });

  // Over MCP nobody announces turns. Old results leave the tool tier, but not the client's window.
  it("follow what was delivered if nobody announces turns", () => {
    const ledger = startedLedger();
    const deliver = (call: number): void => {
      ledger.makeRoom("read_file");
      ledger.addResult(`r${call}`, 6_000);
    };
    for (let call = 1; call <= 7; call += 1) deliver(call);
    expect(ledger.warning()).toBeUndefined();
    deliver(8);
    expect(ledger.used().tool_results).toBeLessThan(48_000);
    expect(ledger.warning()).toContain("Budget Alert: ~14k");
    deliver(9);
    expect(ledger.warning()).toContain("Budget Alert: ~8k");
  });

  it("stop after a reset, which keeps the sum of all conversations", () => {
    const ledger = startedLedger();
    ledger.addResult("r1", 45_000);
    ledger.record("user", 500);
    ledger.reset();
    expect(ledger.warning()).toBeUndefined();
    expect([ledger.delivered(), ledger.lifetime(), ledger.available()]).toEqual([0, 45_000, 62_000]);
    ledger.addResult("r2", 1_000);
    expect([ledger.delivered(), ledger.lifetime()]).toEqual([1_000, 46_000]);
  });
});

describe("the system tier", () => {
  it("is the sum of the parts that servers of one conversation record", () => {
    const ledger = createLedger();
    ledger.record("system", 1_000, "files");
    ledger.record("system", 2_000, "browser");
    ledger.record("system", 1_500, "files");
    expect(ledger.used().system).toBe(3_500);
    expect(createLedger({}, ledger.snapshot()).used().system).toBe(3_500);
  });
});

describe("the share of a call", () => {
  it("is 8,000 tokens, or the tool's own limit", () => {
    const ledger = createLedger({ tools: { vcs_diff: 4_000 } });
    expect(ledger.allocate("read_file")).toBe(8_000);
    expect(ledger.allocate("vcs_diff")).toBe(4_000);
    expect(ledger.allocate("toString")).toBe(8_000);
  });

  // The calls of a turn share the tier. If the ledger added back what tools had used, every call would get 8,000
  // forever.
  it("shrinks to the rest of the tier, but not below what an error needs", () => {
    const ledger = startedLedger();
    ledger.record("tool_results", 36_500);
    expect(ledger.allocate("read_file")).toBe(3_500);
    ledger.record("tool_results", 18_500);
    expect(ledger.allocate("read_file")).toBe(leastAllocation);
  });

  it("is never more than what is available, but enough for an error", () => {
    const ledger = startedLedger();
    ledger.record("user", 58_000);
    expect(ledger.allocate("read_file")).toBe(4_000);
    expect(ledger.beginCall("read_file").mostTokens).toBe(4_000);
    expect(ledger.expected("read_file")).toBe(4_000);
    ledger.record("user", 90_000);
    expect(ledger.allocate("read_file")).toBe(leastAllocation);
  });

  it("of parallel calls is never more than what is available", async () => {
    const ledger = startedLedger();
    ledger.record("user", 56_000);
    const calls = ["1", "2", "3"].map(() => ledger.beginCall("read_file"));
    const granted = await Promise.all(calls.map((call) => call.settle(6_000)));
    expect(granted).toEqual([2_000, 2_000, 2_000]);
  });

  it("takes account of calls that are still running", async () => {
    const ledger = createLedger();
    const [first, second] = ["1", "2", "3", "4"].map(() => ledger.beginCall("read_file"));
    ledger.addResult("r5", 5_000);
    expect(ledger.allocate("read_file")).toBe(3_000);
    expect(await first!.settle(1_000)).toBe(1_000);
    ledger.addResult("r1", 1_000);
    first!.end();
    expect(ledger.allocate("read_file")).toBe(8_000);
    second!.end();
    expect(ledger.used().tool_results).toBe(6_000);
    expect(ledger.snapshot().results).toEqual([
      ["r5", 5_000],
      ["r1", 1_000],
    ]);
  });

  it("is whole again in the next turn", () => {
    const ledger = createLedger();
    for (const id of ["r1", "r2", "r3", "r4", "r5"]) ledger.addResult(id, 8_000);
    expect(ledger.allocate("read_file")).toBe(leastAllocation);
    ledger.beginTurn();
    expect(ledger.snapshot().results).toEqual([]);
    expect(ledger.allocate("read_file")).toBe(8_000);
    expect(ledger.delivered()).toBe(40_000);
  });

  it("takes the room of the oldest results if nobody announces turns, and only then", () => {
    const ledger = createLedger();
    for (const id of ["r1", "r2", "r3", "r4", "r5"]) ledger.addResult(id, 7_000);
    expect(ledger.expected("read_file")).toBe(8_000);
    ledger.makeRoom("read_file");
    expect(ledger.allocate("read_file")).toBe(8_000);
    expect(["r1", "r2"].map(ledger.isCurrent)).toEqual([false, true]);

    ledger.beginTurn();
    for (const id of ["r6", "r7", "r8", "r9", "r10"]) ledger.addResult(id, 7_000);
    ledger.makeRoom("read_file");
    expect(ledger.used().tool_results).toBe(35_000);
    expect(ledger.expected("read_file")).toBe(5_000);
  });
});

describe("limits", () => {
  it("have these defaults", () => {
    expect(createLedger().limits.tiers).toEqual({
      system: 8_000,
      history: 12_000,
      tool_results: 40_000,
      user: 10_000,
      response: 30_000,
    });
  });

  it("give a larger total to tool results, and shrink together with a smaller one", () => {
    expect(createLedger({ total: 400_000 }).limits.tiers).toMatchObject({
      system: 8_000,
      tool_results: 340_000,
    });
    expect(createLedger({ total: 50_000 }).limits).toMatchObject({
      perToolCall: 4_000,
      warningThreshold: 10_000,
      tiers: { system: 4_000, history: 6_000, tool_results: 20_000, user: 5_000, response: 15_000 },
    });
  });

  it("always have room for one call in the tool tier", () => {
    const { tiers } = createLedger({ total: 20_000, historyMax: 12_000, perToolCall: 8_000 }).limits;
    expect(tiers.tool_results).toBe(8_000);
  });

  it("can be set one by one", () => {
    const ledger = createLedger({ historyMax: 20_000, tiers: { response: 10_000 } });
    expect(ledger.limits.tiers).toMatchObject({ history: 20_000, response: 10_000, tool_results: 52_000 });
    expect(ledger.available()).toBe(90_000);
  });
});

describe("the account in words", () => {
  it("is one line", () => {
    const ledger = startedLedger();
    expect(ledger.summary()).toBe("Budget: 62k of 100k left (sys:8k hist:0k tools:0k user:0k resp:30k)");
    ledger.addResult("r1", 30_000);
    ledger.beginTurn();
    ledger.addResult("r2", 5_999);
    expect(ledger.summary()).toBe("Budget: 56k of 100k left (sys:8k hist:0k tools:5k user:0k resp:30k), 35k delivered");
  });

  it("counts what was delivered if nobody announces turns, so that the numbers add up", () => {
    const ledger = startedLedger();
    for (const id of ["r1", "r2", "r3", "r4"]) ledger.addResult(id, 10_000);
    ledger.releaseResults(["r1", "r2"]);
    expect(ledger.summary()).toBe(
      "Budget: 22k of 100k left (sys:8k hist:0k tools:40k user:0k resp:30k), 40k delivered",
    );
    ledger.reset();
    ledger.addResult("r5", 2_000);
    expect(ledger.summary()).toBe(
      "Budget: 60k of 100k left (sys:8k hist:0k tools:2k user:0k resp:30k), 2k delivered, 42k in all conversations",
    );
  });

  it("is data for the model", () => {
    const ledger = startedLedger();
    ledger.record("user", 2_000);
    expect(ledger.forModel()).toEqual({
      total_budget: 100_000,
      used: { system: 8_000, history: 0, tool_results: 0, user_message: 2_000, response_reserve: 30_000 },
      remaining: 92_000,
      available: 60_000,
      delivered: 0,
      lifetime: 0,
      per_tool_budget: 8_000,
    });
    ledger.record("tool_results", 55_000);
    expect(ledger.forModel().warning).toContain("Budget Alert: ~5k");
  });
});

describe("an account without a total", () => {
  it("gives each call its limit and never warns, whatever was delivered", () => {
    const ledger = createLedger({ total: "unlimited", perToolCall: 8_000 });
    for (let call = 0; call < 1_000; call += 1) {
      const share = ledger.beginCall("read_file");
      expect(share.mostTokens).toBe(8_000);
      ledger.addResult(`r${call}`, 8_000);
      share.end();
    }
    expect(ledger.warning()).toBeUndefined();
    expect(ledger.summary()).toBe("Budget: no total (sys:0k hist:0k tools:8000k user:0k resp:30k), 8000k delivered");
    const view = ledger.forModel();
    expect(view).toMatchObject({ total_budget: "unlimited", remaining: "unlimited", available: "unlimited" });
  });

  it("gives parallel calls their limit each", async () => {
    const ledger = createLedger({ total: "unlimited", perToolCall: 8_000 });
    const shares = Array.from({ length: 50 }, () => ledger.beginCall("read_file"));
    expect(await Promise.all(shares.map((share) => share.settle(8_000)))).toEqual(shares.map(() => 8_000));
  });

  it("continues from a stored record", () => {
    const ledger = createLedger({ total: "unlimited" });
    ledger.addResult("r1", 500_000);
    const stored = JSON.parse(JSON.stringify({ limits: ledger.limits, ledger: ledger.snapshot() }));
    expect(createLedger(stored.limits, stored.ledger).forModel()).toEqual(ledger.forModel());
  });
});

describe("the least that a call gets", () => {
  it("holds when nothing is left, also for parallel calls, but never exceeds the call's limit", async () => {
    const ledger = createLedger({ minPerCall: 2_000, tools: { small: 600 } });
    ledger.addResult("r1", 500_000);
    expect([ledger.allocate("read_file"), ledger.allocate("small")]).toEqual([2_000, 600]);
    const shares = Array.from({ length: 5 }, () => ledger.beginCall("read_file"));
    expect(await Promise.all(shares.map((share) => share.settle(9_000)))).toEqual(shares.map(() => 2_000));
  });
});

describe("an account that continues with other limits", () => {
  it("uses the new response reserve, unless a number was recorded", () => {
    const snapshot = createLedger({ total: 100_000 }).snapshot();
    const smaller = createLedger({ total: 16_000 }, snapshot);
    expect(smaller.used().response).toBe(4_800);
    expect(smaller.available()).toBe(11_200);
    const larger = createLedger({ total: 200_000 }, smaller.snapshot());
    expect(larger.used().response).toBe(30_000);
    larger.record("response", 5_000);
    expect(createLedger({ total: 16_000 }, larger.snapshot()).used().response).toBe(5_000);
  });
});

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 5_000 : 200;

type Action =
  | { readonly kind: "record"; readonly tier: LedgerTier; readonly tokens: number }
  | { readonly kind: "result"; readonly id: string; readonly tokens: number }
  | { readonly kind: "call"; readonly tokens: number }
  | { readonly kind: "release"; readonly id: string }
  | { readonly kind: "room" | "turn" };

const tokens = fc.nat(20_000);
const id = fc.nat(30).map((number) => `r${number}`);
const actions: fc.Arbitrary<Action[]> = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("record" as const), tier: fc.constantFrom(...ledgerTiers), tokens }),
    fc.record({ kind: fc.constant("result" as const), id, tokens }),
    fc.record({ kind: fc.constant("call" as const), tokens }),
    fc.record({ kind: fc.constant("release" as const), id }),
    fc.record({ kind: fc.constantFrom("room" as const, "turn" as const) }),
  ),
  { maxLength: 60 },
);

/** Does the same to the ledger and to a list of its expected content. */
function apply(ledger: Ledger, model: Map<string, number>, action: Action): void {
  switch (action.kind) {
    case "record":
      ledger.record(action.tier, action.tokens);
      if (action.tier === "tool_results") model.set("", (model.get("") ?? 0) + action.tokens);
      return;
    case "result":
      ledger.addResult(action.id, action.tokens);
      model.set(action.id, action.tokens);
      return;
    case "release":
      ledger.releaseResults([action.id]);
      model.delete(action.id);
      return;
    default: {
      if (action.kind === "turn") ledger.beginTurn();
      else if (action.kind === "call") ledger.beginCall("read_file", action.tokens);
      else ledger.makeRoom("read_file");
      const kept = ledger.snapshot().results.map(([key]) => key);
      const gone = [...model.keys()].slice(0, action.kind === "turn" ? model.size : model.size - kept.length);
      for (const key of gone) model.delete(key);
      expect(kept).toEqual([...model.keys()]);
    }
  }
}

const sumOf = (values: Iterable<number>): number => [...values].reduce((sum, value) => sum + value, 0);

it("keeps recorded results in the tool tier until they are released, and gives shares that fit", () => {
  const check = (list: Action[]): void => {
    const ledger = createLedger();
    const model = new Map<string, number>();
    for (const action of list) {
      apply(ledger, model, action);
      expect(ledger.used().tool_results).toBe(sumOf(model.values()));
      const { system, history, tool_results, user, response } = ledger.used();
      const { turnsAnnounced } = ledger.snapshot();
      const spent = history + tool_results;
      expect(ledger.remaining()).toBe(
        100_000 - system - (turnsAnnounced ? spent : Math.max(spent, ledger.delivered())),
      );
      expect(ledger.available()).toBe(ledger.remaining() - user - response);
      const share = ledger.allocate("read_file");
      expect(share).toBeGreaterThanOrEqual(leastAllocation);
      expect(share).toBeLessThanOrEqual(Math.max(leastAllocation, 40_000 - tool_results));
      expect(share).toBeLessThanOrEqual(Math.max(leastAllocation, ledger.available()));
    }
  };
  fc.assert(fc.property(actions, check), { numRuns });
});

it("continues from a snapshot, without calls that were running", () => {
  const check = (before: Action[], after: Action[]): void => {
    const first = createLedger();
    for (const action of before) if (action.kind !== "call") apply(first, new Map(), { ...action });
    const second = createLedger({}, JSON.parse(JSON.stringify(first.snapshot())));
    for (const ledger of [first, second]) {
      for (const action of after) if (action.kind === "record") ledger.record(action.tier, action.tokens);
      ledger.addResult("r99", 123);
    }
    expect(second.snapshot()).toEqual(first.snapshot());
    expect(second.summary()).toBe(first.summary());
    first.makeRoom("read_file");
    second.makeRoom("read_file");
    expect(second.snapshot()).toEqual(first.snapshot());
  };
  const quiet = actions.map((list) => list.filter(({ kind }) => kind !== "room" && kind !== "turn" && kind !== "call"));
  fc.assert(fc.property(quiet, actions, check), { numRuns });
});

it("counts all results as delivered, released or not", () => {
  const check = (results: number[]): void => {
    const ledger = createLedger();
    for (const [index, size] of results.entries()) {
      ledger.makeRoom("read_file");
      ledger.addResult(`r${index}`, size);
    }
    expect(ledger.delivered()).toBe(sumOf(results));
  };
  fc.assert(fc.property(fc.array(tokens), check), { numRuns });
});
