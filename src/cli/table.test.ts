import { expect, test } from "vitest";
import { formatNumber, renderTable } from "./table.ts";

test("columns are as wide as their widest cell, and no line ends in spaces", () => {
  const rows = [
    ["n", "name", "x"],
    ["1,000", "a", ""],
  ];
  expect(renderTable(rows, ["right", "left", "left"])).toEqual(["    n  name  x", "1,000  a"]);
});

test("two hundred thousand rows are no more than many rows", () => {
  const rows = Array.from({ length: 200_000 }, (_, index) => [String(index), "x"]);
  const lines = renderTable(rows, ["right", "left"]);
  expect(lines).toHaveLength(200_000);
  expect(lines[0]).toBe("     0  x");
});

test("thousands stand apart", () => {
  expect([0, 999, 1000, 1234567, 100000].map(formatNumber)).toEqual([
    "0",
    "999",
    "1,000",
    "1,234,567",
    "100,000",
  ]);
});
