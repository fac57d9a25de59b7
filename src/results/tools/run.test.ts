import { expect, test } from "vitest";
import { describeCount, formatCount } from "./run.ts";

test.each([
  [{ returned: 1, total: 1 }, "1 match"],
  [{ returned: 1 }, "1 match"],
  [{ returned: 0, total: 0 }, "0 matches"],
  [{}, "0 matches"],
  [{ returned: 12 }, "12 matches"],
  [{ returned: 1, total: 5 }, "1 of 5 matches"],
  [{ returned: 0, total: 1 }, "0 of 1 match"],
])("%j is %s", (data, phrase) => {
  expect(describeCount(data, ["match", "matches"])).toBe(phrase);
});

test("one of a kind has the singular", () => {
  expect([0, 1, 2].map((count) => formatCount(count, ["file", "files"]))).toEqual(["0 files", "1 file", "2 files"]);
});
