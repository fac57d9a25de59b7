import { expect, test } from "vitest";
import { outputGrowthOf } from "./lost-thinking.ts";

test("answers grow from the first loss of thinking on, and most if every call loses some", () => {
  expect(outputGrowthOf({ losses: 0, calls: 9 })).toBe(0);
  expect(outputGrowthOf({ losses: 1, calls: 1 })).toBe(0.045);
  expect(outputGrowthOf({ losses: 1, calls: 200, effort: "max" })).toBe(0.201);
  expect(outputGrowthOf({ losses: 200, calls: 200, effort: "max" })).toBeCloseTo(0.671);
  expect(outputGrowthOf({ losses: 3, calls: 101, effort: "low" })).toBeCloseTo(0.025 + 0.021 * 0.02);
});
