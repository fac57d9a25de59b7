import { expect, test } from "vitest";
import { problemWithWindow } from "./whole-number.ts";

test("one token for messages is enough", () => {
  expect(problemWithWindow(11, { reserve: 4, prefixTokens: 6 })).toBeUndefined();
});

test.each([
  [{ reserve: 16_000, prefixTokens: 0 }, "the reserve of 16,000 takes", "Lower --reserve."],
  [{ reserve: 20_000, prefixTokens: 100 }, "the reserve of 20,000 takes", "Lower --reserve."],
  [{ reserve: 0, prefixTokens: 16_000 }, "the prefix of 16,000 takes", "Lower --prefix-tokens."],
  [
    { reserve: 10_000, prefixTokens: 6_000 },
    "the reserve of 10,000 and the prefix of 6,000 take",
    "Lower --reserve or --prefix-tokens.",
  ],
  [
    { reserve: 16_000, prefixTokens: 16_000 },
    "the reserve of 16,000 and the prefix of 16,000 take",
    "Lower --reserve or --prefix-tokens.",
  ],
])("the error names what takes the whole window: %j", (parts, named, hint) => {
  const problem = { code: "usage", message: `${named} the whole window of 16,000`, hint };
  expect(problemWithWindow(16_000, parts)).toMatchObject(problem);
});
