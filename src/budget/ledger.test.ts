import { describe, expect, it } from "vitest";
import { createCounter } from "../tokens/index.ts";
import { createLedger, type Ledger } from "./ledger.ts";
import { leastAllocation } from "./ledger-options.ts";

/** As an agent has it: with a system prompt of 8,000 tokens. */
function startedLedger(): Ledger {
  const ledger = createLedger();
  ledger.record("system", 8_000);
  return ledger;
}

it("counts as the seed estimates, where that counter is chosen", async () => {
  const { count } = await createCounter("chars/3.5");
  const sizes = [0, 7, 8, 35, 36, 3_500].map((length) => count("x".repeat(length)));
  expect(sizes).toEqual([0, 2, 3, 10, 11, 1_000]);
});

describe("the account", () => {
  it("begins with the whole total remaining", () => {
    expect(createLedger().remaining()).toBe(100_000);
    expect(createLedger().used()).toEqual({
      system: 0,
      history: 0,
      tool_results: 0,
      user: 0,
      response: 30_000,
    });
  });

  it("has 62,000 available beside a system prompt of 8,000 and the response reserve", () => {
    expect(startedLedger().available()).toBe(62_000);
    expect(startedLedger().remaining()).toBe(92_000);
  });

  it("replaces what a tier has, but adds up tool results", () => {
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

  it("shows a negative number instead of hiding it", () => {
    const ledger = startedLedger();
    ledger.record("tool_results", 95_000);
    expect(ledger.remaining()).toBe(-3_000);
    expect(ledger.available()).toBe(-33_000);
    expect(ledger.warning()).toContain("~-33k tokens");
  });

  it.each([
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

  it("come below the threshold, and in sharper words below half of it", () => {
    expect(withTools(45_000)).toBe(
      "[Budget Alert: ~17k tokens remaining. Consider summarizing or completing soon.]",
    );
    expect(withTools(55_000)).toBe(
      "[Budget Critical: ~7k tokens remaining. Complete the task or summarize now.]",
    );
  });

  it("are not there at the threshold itself, and still mild at half of it", () => {
    expect(withTools(42_000)).toBeUndefined();
    expect(withTools(42_001)).toContain("Budget Alert: ~19k");
    expect(withTools(52_000)).toContain("Budget Alert: ~10k");
    expect(withTools(52_001)).toContain("Budget Critical: ~9k");
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
});

describe("the share of a call", () => {
  it("is 8,000 tokens, or what a tool has of its own", () => {
    const ledger = createLedger({ tools: { vcs_diff: 4_000 } });
    expect(ledger.allocate("read_file")).toBe(8_000);
    expect(ledger.allocate("vcs_diff")).toBe(4_000);
    expect(ledger.allocate("toString")).toBe(8_000);
  });

  // Where the seed's own code added back what tools had used, and so gave 8,000 forever, the tier is what the calls of a turn share.
  it("shrinks to what is left of the tier, down to what an error needs", () => {
    const ledger = startedLedger();
    ledger.record("tool_results", 36_500);
    expect(ledger.allocate("read_file")).toBe(3_500);
    ledger.record("tool_results", 18_500);
    expect(ledger.allocate("read_file")).toBe(leastAllocation);
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

  it("is made by the oldest results where nobody announces turns, and only there", () => {
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
  it("are the seed's tiers", () => {
    expect(createLedger().limits.tiers).toEqual({
      system: 8_000,
      history: 12_000,
      tool_results: 40_000,
      user: 10_000,
      response: 30_000,
    });
  });

  it("leave more to tool results with a larger total, and shrink together with a smaller one", () => {
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

  it("have room for one call in the tool tier however little the others leave", () => {
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
    expect(ledger.summary()).toBe("Budget: 62k/100k remaining (sys:8k hist:0k tools:0k user:0k resp:30k)");
    ledger.addResult("r1", 30_000);
    ledger.beginTurn();
    ledger.addResult("r2", 5_999);
    expect(ledger.summary()).toBe(
      "Budget: 56k/100k remaining (sys:8k hist:0k tools:5k user:0k resp:30k), 35k delivered so far",
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
      per_tool_budget: 8_000,
    });
    ledger.record("tool_results", 55_000);
    expect(ledger.forModel().warning).toContain("Budget Critical: ~5k");
  });
});

describe("an account that goes on with other limits", () => {
  it("has their response reserve, unless another number was recorded", () => {
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
