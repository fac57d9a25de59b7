import fc from "fast-check";
import { expect, it } from "vitest";
import { createLedger, type Ledger } from "./ledger.ts";
import { type LedgerTier, leastAllocation, ledgerTiers } from "./ledger-options.ts";

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

/** Does the same to the ledger and to a list of what should be in it. */
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
      // Oldest first.
      const gone = [...model.keys()].slice(0, action.kind === "turn" ? model.size : model.size - kept.length);
      for (const key of gone) model.delete(key);
      expect(kept).toEqual([...model.keys()]);
    }
  }
}

const sumOf = (values: Iterable<number>): number => [...values].reduce((sum, value) => sum + value, 0);

it("has in its tool tier what was recorded and not released, and a share that fits", () => {
  const check = (list: Action[]): void => {
    const ledger = createLedger();
    const model = new Map<string, number>();
    for (const action of list) {
      apply(ledger, model, action);
      expect(ledger.used().tool_results).toBe(sumOf(model.values()));
      const { system, history, tool_results, user, response } = ledger.used();
      expect(ledger.remaining()).toBe(100_000 - system - history - tool_results);
      expect(ledger.available()).toBe(ledger.remaining() - user - response);
      const share = ledger.allocate("read_file");
      expect(share).toBeGreaterThanOrEqual(leastAllocation);
      expect(share).toBeLessThanOrEqual(Math.max(leastAllocation, 40_000 - tool_results));
    }
  };
  fc.assert(fc.property(actions, check), { numRuns });
});

it("goes on from a snapshot as if nothing had happened, but for calls that were running", () => {
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
  const quiet = actions.map((list) =>
    list.filter(({ kind }) => kind !== "room" && kind !== "turn" && kind !== "call"),
  );
  fc.assert(fc.property(quiet, actions, check), { numRuns });
});

it("counts as delivered whatever tools gave, released or not", () => {
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
