import { expect, it } from "vitest";
import { breakEvenCalls, economicBatch } from "./break-even.ts";

it("returns the number of calls after which a trim has paid for itself", () => {
  const calls = (read: number, write: number) => breakEvenCalls({ read, write, cleared: 30_000, rewritten: 60_000 });
  expect(calls(0.1, 1.25)).toBeCloseTo(11.5 * 2);
  expect(calls(0.1, 1)).toBeCloseTo(9 * 2);
  expect(calls(0.05, 1.25)).toBeCloseTo(24 * 2);
  expect(calls(0.025, 1.25)).toBeCloseTo(49 * 2);
});

it("equals the costs with and without a trim, added up call by call", () => {
  const [read, write, cleared, rewritten] = [0.1, 1.25, 20_000, 8_000];
  let [kept, trimmed] = [read * (cleared + rewritten), write * rewritten];
  let calls = 0;
  for (; trimmed > kept; calls++) {
    kept += read * (cleared + rewritten);
    trimmed += read * rewritten;
  }
  // The call that trims already saves.
  expect(calls + 1).toBe(Math.ceil(breakEvenCalls({ read, write, cleared, rewritten })));
});

it("pays at once if nothing is rewritten, and never if nothing is cleared", () => {
  expect(breakEvenCalls({ read: 0.1, write: 1.25, cleared: 10, rewritten: 0 })).toBe(0);
  expect(breakEvenCalls({ read: 1, write: 1, cleared: 10, rewritten: 10 })).toBe(0);
  expect(breakEvenCalls({ read: 0.1, write: 1.25, cleared: 0, rewritten: 10 })).toBe(Infinity);
});

it("finds the batch that costs least", () => {
  const growth = { protectedTokens: 40_000, tokensPerCall: 6_400 };
  const batch = (read: number, write: number, coldShare: number) =>
    Math.round(economicBatch({ read, write, coldShare, ...growth }) / 1000);
  expect([0, 0.05, 0.2].map((cold) => batch(0.1, 1.25, cold))).toEqual([77, 60, 38]);
  expect([0, 0.05, 0.2].map((cold) => batch(0.1, 2, cold))).toEqual([99, 69, 40]);
  expect([0, 0.05, 0.2].map((cold) => batch(0.025, 1.25, cold))).toEqual([158, 83, 43]);
  expect(economicBatch({ read: 0.1, write: 1.25, coldShare: 1, ...growth })).toBe(0);
});

it("returns a batch that is cheaper than its neighbours", () => {
  const [read, write, carried, grown] = [0.1, 1.25, 40_000, 6_400];
  // A call carries the protected tokens and half a batch. Each batch writes the protected tokens again.
  const cost = (batch: number) => read * (carried + batch / 2) + ((write - read) * carried * grown) / batch;
  const best = economicBatch({ read, write, protectedTokens: carried, tokensPerCall: grown });
  for (const other of [0.5, 0.9, 0.99, 1.01, 1.1, 2]) expect(cost(best)).toBeLessThan(cost(best * other));
});

it("refuses invalid prices and shares", () => {
  const growth = { protectedTokens: 1, tokensPerCall: 1 };
  expect(() => breakEvenCalls({ read: 0, write: 1, cleared: 1, rewritten: 1 })).toThrow("not valid prices");
  expect(() => economicBatch({ read: 0.1, write: Number.NaN, ...growth })).toThrow("not valid prices");
  expect(() => economicBatch({ read: 0.1, write: 1, coldShare: 2, ...growth })).toThrow("from 0 to 1, not 2");
});

it("refuses an unknown field and a missing one", () => {
  const trim = { read: 0.1, write: 1.25, cleared: 10, rewritten: 10 };
  const refused = (changes: object, message: string, hint: string) =>
    expect(() => breakEvenCalls({ ...trim, ...changes })).toThrow(
      expect.objectContaining({ code: "invalid_argument", message, hint: expect.stringContaining(hint) }),
    );
  refused({ clear: 5 }, 'unknown field "clear"', 'Did you mean "cleared"?');
  refused({ xyzzy: 5 }, 'unknown field "xyzzy"', "Pass read, write, cleared, rewritten.");
  refused({ cleared: undefined }, "cleared must be a number of tokens from 0, not undefined", "Pass read");
  refused({ rewritten: Number.NaN }, "rewritten must be a number of tokens from 0, not NaN", "Pass read");
  refused({ rewritten: -1 }, "rewritten must be a number of tokens from 0, not -1", "Pass read");
  const growth = { read: 0.1, write: 1.25, tokensPerCall: 1 } as Parameters<typeof economicBatch>[0];
  expect(() => economicBatch(growth)).toThrow("protectedTokens must be a number of tokens");
  expect(() => breakEvenCalls(undefined as never)).toThrow("cleared must be a number of tokens");
});
