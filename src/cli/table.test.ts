import { expect, test } from "vitest";
import { formatNumber, renderTable } from "./table.ts";

test("columns are as wide as their widest cell, and no line ends in spaces", () => {
  const rows = [
    ["n", "name", "x"],
    ["1,000", "a", ""],
  ];
  expect(renderTable(rows, ["right", "left", "left"])).toEqual(["    n  name  x", "1,000  a"]);
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
