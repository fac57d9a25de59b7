import { describe, expect, it } from "vitest";
import { createLedger, type Ledger } from "./ledger.ts";

function startedLedger(): Ledger {
  const ledger = createLedger();
  ledger.record("system", 8_000);
  return ledger;
}

describe("the numbers of single results", () => {
  it("replaces what a result had before, and takes a cancelled one back", () => {
    const ledger = createLedger();
    ledger.addResult("r1", 1_000);
    ledger.addResult("r1", 400);
    expect([ledger.delivered(), ledger.used().tool_results]).toEqual([400, 400]);
    ledger.addResult("r2", 300);
    ledger.cancelResult("r1");
    expect([ledger.delivered(), ledger.used().tool_results]).toEqual([300, 300]);
    expect([ledger.isCurrent("r1"), ledger.isCurrent("r2")]).toEqual([false, true]);
  });

  it("adds up what is recorded without an id", () => {
    const ledger = createLedger();
    ledger.record("tool_results", 1_000);
    ledger.record("tool_results", 500);
    expect(ledger.delivered()).toBe(1_500);
  });

  it("keeps old results that leave exactly enough room, or enough for a short call", () => {
    const ledger = createLedger({ perToolCall: 1_000, tiers: { tool_results: 3_000 } });
    ledger.addResult("r1", 1_000);
    ledger.addResult("r2", 1_000);
    ledger.makeRoom("read_file");
    expect(ledger.isCurrent("r1")).toBe(true);
    ledger.addResult("r3", 400);
    ledger.beginCall("read_file", 500);
    expect(ledger.isCurrent("r1")).toBe(true);
  });

  it("expects less if more is needed besides", () => {
    const ledger = startedLedger();
    ledger.record("tool_results", 54_000);
    expect(ledger.expected("read_file", 5_000)).toBe(3_000);
  });

  it("says whether the history counts: not if more was delivered than is current", () => {
    const ledger = createLedger();
    ledger.record("history", 100);
    ledger.addResult("r1", 1_000);
    expect(ledger.countsHistory()).toBe(true);
    ledger.releaseResults(["r1"]);
    expect(ledger.countsHistory()).toBe(false);
  });
});

describe("a snapshot", () => {
  it("has parts of the system text only if they have names, and counts an unnamed one with them", () => {
    const ledger = createLedger();
    ledger.record("user", 100);
    ledger.record("system", 500);
    expect(ledger.snapshot()).not.toHaveProperty("systemParts");
    expect(ledger.snapshot()).not.toHaveProperty("deliveredBefore");
    const again = createLedger({}, ledger.snapshot());
    again.record("system", 50, "notes");
    expect(again.used().system).toBe(550);
    expect(again.snapshot().systemParts).toEqual({ "": 500, notes: 50 });
  });

  it("does not count other tiers as system text", () => {
    const ledger = createLedger();
    ledger.record("user", 100);
    ledger.record("system", 50, "notes");
    expect(ledger.used().system).toBe(50);
  });

  it("says whether the response's number was recorded", () => {
    const ledger = createLedger();
    ledger.record("user", 100);
    expect(ledger.snapshot().responseRecorded).toBe(false);
    ledger.record("response", 100);
    expect(ledger.snapshot().responseRecorded).toBe(true);
  });
});

describe("what a model reads", () => {
  it("has every tier once, and what is left", () => {
    const ledger = startedLedger();
    ledger.record("history", 2_000);
    ledger.record("user", 1_000);
    ledger.record("tool_results", 5_000);
    expect(ledger.summary()).toBe("Budget: 54k of 100k left (sys:8k hist:2k tools:5k user:1k resp:30k), 5k delivered");
    expect(ledger.forModel()).not.toHaveProperty("warning");
  });

  it("has the sum of all conversations", () => {
    const ledger = startedLedger();
    ledger.addResult("r1", 5_000);
    ledger.reset();
    ledger.addResult("r2", 2_000);
    expect(ledger.forModel()).toMatchObject({ delivered: 2_000, lifetime: 7_000 });
  });
});
