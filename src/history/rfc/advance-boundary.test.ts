import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { advanceBoundary, type BoundaryInput, budgetThreshold, headroomTarget } from "./advance-boundary.ts";
import { finalEstimate, tokensOf } from "./estimate-tokens.ts";
import type { RfcMessage } from "./rfc-message.ts";

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 20_000 : 1_000;

/** The RFC's section 5 word for word, with a new sum at every step. */
function byTheWord(input: BoundaryInput): { boundary: number; tokens: number } {
  const { roles, full, trimmed, previous, keep, estimate, threshold, target } = input;
  const current = [...full];
  const trim = (index: number) => {
    if (roles[index] === "assistant" || roles[index] === "tool") current[index] = trimmed[index]!;
  };
  const effective = () => estimate(current.reduce((sum, each) => sum + each, 0));
  for (let index = 0; index < Math.min(previous, roles.length); index++) trim(index);
  if (effective() <= threshold) return { boundary: previous, tokens: effective() };
  const assistants = roles.flatMap((role, index) => (role === "assistant" ? [index] : []));
  const kept = keep === 0 ? roles.length : (assistants.at(-keep) ?? 0);
  for (let index = Math.min(previous, roles.length); index < kept; index++) trim(index);
  let candidate = kept > 0 ? kept : previous;
  for (let index = candidate; index < roles.length && effective() > target; index++) {
    if (roles[index] !== "assistant" && roles[index] !== "tool") continue;
    trim(index);
    candidate = index + 1;
  }
  return { boundary: Math.max(candidate, previous), tokens: effective() };
}

const input: fc.Arbitrary<BoundaryInput> = fc
  .record({
    messages: fc.array(
      fc.tuple(
        fc.constantFrom("system" as const, "user" as const, "assistant" as const, "tool" as const),
        fc.nat({ max: 40 }),
        fc.nat({ max: 12 }),
      ),
      { maxLength: 14 },
    ),
    previous: fc.nat({ max: 16 }),
    keep: fc.nat({ max: 6 }),
    threshold: fc.nat({ max: 400 }),
    overhead: fc.nat({ max: 50 }),
    headroom: fc.boolean(),
  })
  .map(({ messages, previous, keep, threshold, overhead, headroom }) => ({
    roles: messages.map(([role]) => role),
    full: messages.map(([, full]) => full),
    trimmed: messages.map(([, , trimmed]) => trimmed),
    previous,
    keep,
    estimate: (rawTokens) => finalEstimate(rawTokens) + overhead,
    threshold,
    target: headroom ? headroomTarget(threshold) : threshold,
  }));

describe("the boundary", () => {
  it("is where the RFC's steps put it, taken one by one", () => {
    fc.assert(
      fc.property(input, (each) => {
        expect(advanceBoundary(each)).toEqual(byTheWord(each));
      }),
      { numRuns },
    );
  });

  it("stops where the target is met exactly", () => {
    const input = {
      full: [10, 10, 10],
      trimmed: [5, 5, 5],
      previous: 0,
      keep: 9,
      estimate: (raw: number) => raw,
    };
    const roles = ["assistant", "tool", "assistant"] as const;
    expect(advanceBoundary({ ...input, roles, threshold: 25, target: 25 })).toEqual({
      boundary: 1,
      tokens: 25,
    });
    expect(advanceBoundary({ ...input, roles, threshold: 25, target: 20 })).toEqual({
      boundary: 2,
      tokens: 20,
    });
    expect(advanceBoundary({ ...input, roles, threshold: 30, target: 20 })).toEqual({
      boundary: 0,
      tokens: 30,
    });
  });

  it("costs one pass over the history", () => {
    const length = 2_000;
    let reads = 0;
    const counted = (numbers: number[]) =>
      new Proxy(numbers, {
        get(target, key) {
          reads++;
          return Reflect.get(target, key);
        },
      });
    const { boundary } = advanceBoundary({
      roles: Array.from({ length }, (_, index) => (index % 2 === 0 ? "user" : "assistant")),
      full: counted(new Array(length).fill(100)),
      trimmed: counted(new Array(length).fill(11)),
      previous: 100,
      keep: 1_000_000,
      estimate: finalEstimate,
      threshold: 0,
      target: 0,
    });
    expect(boundary).toBe(length);
    expect(reads).toBeLessThanOrEqual(3 * length);
  });

  it("rests for several turns where trimming makes headroom", () => {
    const threshold = budgetThreshold(600 - 32, 0.8);
    expect([threshold, headroomTarget(threshold)]).toEqual([454, 340]);
    const messages: RfcMessage[] = [];
    const say = (user: string, assistant: string) =>
      messages.push({ role: "user", content: user }, { role: "assistant", content: assistant });
    const reduce = (previous: number) => {
      const tokens = messages.map(tokensOf);
      return advanceBoundary({
        roles: messages.map(({ role }) => role),
        full: tokens.map(({ full }) => full),
        trimmed: tokens.map(({ trimmed }) => trimmed),
        previous,
        keep: 2,
        estimate: finalEstimate,
        threshold,
        target: headroomTarget(threshold),
      });
    };
    for (let turn = 0; turn < 10; turn++) say(`user-${turn}`, `assistant-${turn}-${"Z".repeat(200)}`);
    expect(reduce(0)).toEqual({ boundary: 18, tokens: 282 });
    say("new question", "short answer");
    expect(reduce(18).boundary).toBe(18);
    say("another question", "another short answer");
    expect(reduce(18).boundary).toBe(18);
  });
});

describe("the threshold", () => {
  it.each([
    [100, 0.8, 80],
    [312, 0.8, 249],
    [800, 0.3, 240],
    [0, 0.8, 0],
    [200_000, 1, 200_000],
    [200_000, 0, 0],
    // 0.65 is a little less as a 32-bit float, 0.7 too; only the second product rounds back up
    [180, 0.65, 116],
    [10, 0.7, 7],
    // above 2²⁴ a 32-bit float has no odd numbers
    [16_777_217, 1, 16_777_216],
  ])("of %d at %d is %d", (contextWindow, share, threshold) => {
    expect(budgetThreshold(contextWindow, share)).toBe(threshold);
  });
});
