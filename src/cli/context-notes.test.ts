import { expect, test } from "vitest";
import { notesOnContext } from "./context-notes.ts";

const account = {
  tokens: 50,
  maxTokens: 50,
  counter: "bytes/4",
  layers: [
    { name: "project", tokens: 30, truncated: true, omitted: 1_041 },
    { name: "fabric", tokens: 10, truncated: true, omitted: 1 },
    { name: "priorWork", tokens: 8, truncated: true, omitted: 2 },
  ],
  omitted: 1_044,
  overflow: 3,
} as const;

test("missing parts are called entries of a tree, items of the fabric, or lines", () => {
  const ofProject = (omittedEntries: number) => notesOnContext({ account, omittedEntries })[1];
  expect(ofProject(0)).toBe("project: 30 tokens, truncated, 1,041 lines omitted");
  expect(ofProject(1_041)).toBe("project: 30 tokens, truncated, 1,041 entries omitted");
  expect(ofProject(1)).toBe("project: 30 tokens, truncated, 1 entry and 1,040 lines omitted");
  expect(notesOnContext({ account, omittedEntries: 41 })).toEqual([
    "context: 50 of 50 tokens (bytes/4)",
    "project: 30 tokens, truncated, 41 entries and 1,000 lines omitted",
    "fabric: 10 tokens, truncated, 1 item omitted",
    "prior work: 8 tokens, truncated, 2 lines omitted",
    "3 tokens of discoveries did not fit",
  ]);
});

test("no notes are printed if all layers are whole", () => {
  const layers = [{ name: "project", tokens: 30, truncated: false, omitted: 0 }] as const;
  const whole = { account: { ...account, layers, overflow: 0 }, omittedEntries: 0 };
  expect(notesOnContext(whole)).toEqual([]);
  expect(notesOnContext(whole, { evenIfWhole: true })).toHaveLength(2);
  expect(notesOnContext({ account, omittedEntries: 0 })).toHaveLength(5);
});
