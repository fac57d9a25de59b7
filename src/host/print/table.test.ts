import { expect, test } from "vitest";
import { renderTable } from "./table.ts";

test("columns are as wide as their widest cell, and no line ends in spaces", () => {
  const rows = [
    ["n", "name", "x"],
    ["1,000", "a", ""],
  ];
  expect(renderTable(rows, ["right", "left", "left"])).toEqual(["    n  name  x", "1,000  a"]);
});

test("two hundred thousand rows do not overflow the stack", () => {
  const rows = Array.from({ length: 200_000 }, (_, index) => [String(index), "x"]);
  const lines = renderTable(rows, ["right", "left"]);
  expect(lines).toHaveLength(200_000);
  expect(lines[0]).toBe("     0  x");
});
