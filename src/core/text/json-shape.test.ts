import { expect, test } from "vitest";
import { isFields, isText, isTime, isWhole, listOf, mapOf, objectOf, pairOf, readJson } from "./json-shape.ts";

const isEntry = objectOf({ id: isText, sizes: listOf(isWhole) }, { place: pairOf(isText, isWhole) });

test("returns a value of the right shape unchanged, including unnamed members", () => {
  for (const value of [
    { id: "a", sizes: [] },
    { id: "a", sizes: [0, 1], place: ["x", 2], more: null },
  ]) {
    expect(readJson(JSON.stringify(value), isEntry)).toEqual(value);
  }
});

test.each([
  undefined,
  "",
  "{",
  "null",
  "7",
  "[]",
  '"x"',
  "{}",
  '{"id":7,"sizes":[]}',
  '{"id":"a","sizes":{}}',
  '{"id":"a","sizes":[-1]}',
  '{"id":"a","sizes":[0.5]}',
  '{"id":"a","sizes":[1e300]}',
  '{"id":"a","sizes":["1"]}',
  '{"id":"a","sizes":[],"place":["x"]}',
  '{"id":"a","sizes":[],"place":["x",1,2]}',
])("%j has another shape", (text) => {
  expect(readJson(text, isEntry)).toBeUndefined();
});

test("a time must exist, and a map has values of one kind", () => {
  expect(["2026-11-16T09:00:00Z", "2026-11-16T09:00:00.250Z"].every(isTime)).toBe(true);
  expect(["2026-13-16T09:00:00Z", "today", "2026-11-16", 7].some(isTime)).toBe(false);
  expect(mapOf(isWhole)({ a: 1 })).toBe(true);
  expect(mapOf(isWhole)({ a: "1" })).toBe(false);
});

test("refuses fields that are too deep to be written again", () => {
  const nested = (depth: number): unknown => JSON.parse(`{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`);
  expect(isFields(nested(100))).toBe(true);
  expect(isFields(nested(20_000))).toBe(false);
  expect(isFields([])).toBe(false);
});
