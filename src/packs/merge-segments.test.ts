import { expect, test } from "vitest";
import { parseSegments, type Segment, type Tier, textAt } from "../text/index.ts";
import { mergeSegments } from "./merge-segments.ts";

const a = segment("core", "A\n");
const b = segment("detail", "B\n");
const c = segment("core", "C\n");
const x = segment("core", "X\n");
const y = segment("detail", "Y\n");

function segment(tier: Tier, text: string): Segment {
  return { tier, text };
}

/** Tiers and trimmed texts, such as "core A". */
function shape(segments: readonly Segment[]): string[] {
  return segments.map(({ tier, text }) => `${tier} ${text.trim()}`);
}

test("each tier goes behind the last segment of its tier", () => {
  const merged = mergeSegments([a, b, c], [x, y], "after");
  expect(shape(merged)).toEqual(["core A", "detail B", "detail Y", "core C", "core X"]);
  expect(textAt(merged, "full")).toBe("A\nB\n\nY\nC\n\nX\n");
  expect(textAt(merged, "minimal")).toBe("A\nC\n\nX\n");
});

test("each tier goes before the first segment of its tier", () => {
  const merged = mergeSegments([a, b, c], [x, y], "before");
  expect(shape(merged)).toEqual(["core X", "core A", "detail Y", "detail B", "core C"]);
  expect(textAt(merged, "full")).toBe("X\n\nA\nY\n\nB\nC\n");
  expect(textAt(merged, "minimal")).toBe("X\n\nA\nC\n");
});

test("there is one blank line between, whatever either text ends and starts with", () => {
  for (const end of ["", "\n", "\n\n", "\n\n\n"]) {
    for (const start of ["", "\n", "\n \n"]) {
      const after = mergeSegments([segment("core", `A${end}`)], [segment("core", `${start}X`)], "after");
      expect(textAt(after, "full").trimEnd()).toBe("A\n\nX");
      const before = mergeSegments([segment("core", `${start}A`)], [segment("core", `X${end}`)], "before");
      expect(textAt(before, "full").trim()).toBe("X\n\nA");
    }
  }
});

test("what follows stands as far away as it stood before", () => {
  const merged = mergeSegments([segment("detail", "B\n\n"), c], [y], "after");
  expect(textAt(merged, "full")).toBe("B\n\nY\n\nC\n");
});

test("a tier that the base lacks goes to its end or its start, in the addition's own order", () => {
  expect(textAt(mergeSegments([segment("core", "A")], [y, x], "after"), "full")).toBe("A\n\nX\n\nY\n");
  expect(textAt(mergeSegments([segment("core", "A")], [x, y], "before"), "full")).toBe("X\n\nY\n\nA");
});

test("where one side is empty the other is used as it is", () => {
  expect(mergeSegments([], [x, y], "after")).toEqual([x, y]);
  expect(mergeSegments([segment("core", "\n")], [x], "before")).toEqual([x]);
  const base = [a, b];
  expect(mergeSegments(base, [], "after")).toBe(base);
  expect(mergeSegments(base, [segment("detail", " \n")], "after")).toBe(base);
});

test("the parts of one tier of an addition stay together in their order", () => {
  const added = parseSegments("X1\n<!-- verbosity:detail -->\nY\n<!-- verbosity:core -->\nX2\n").segments;
  expect(textAt(mergeSegments([a, b], added, "after"), "full")).toBe("A\n\nX1\nX2\nB\n\nY\n");
});

test("an indented first line keeps its spaces", () => {
  expect(textAt(mergeSegments([a], [segment("core", "\n    code\n")], "after"), "full")).toBe(
    "A\n\n    code\n",
  );
});
