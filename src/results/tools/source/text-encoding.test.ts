import { open } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { CutText } from "../../../core/text/index.ts";
import { createTree } from "../temporary-tree.contract.ts";
import { openLines } from "./text-encoding.ts";

async function linesOf(bytes: Buffer | string, maxLineLength = 1_000_000): Promise<CutText[]> {
  const handle = await open(join(createTree({ file: bytes }), "file"));
  const lines: CutText[] = [];
  const { signal } = new AbortController();
  for await (const batch of openLines(handle, { encoding: "utf-8", maxLineLength, signal })!.batches)
    lines.push(...batch);
  await handle.close();
  return lines;
}

test.each([
  ["", []],
  ["\n", [""]],
  ["a", ["a"]],
  ["a\n", ["a"]],
  ["a\r\nb\rc\n\n", ["a", "b\rc", ""]],
  ["\uFEFFa", ["a"]],
])("%j has the lines %j", async (text, expected) => {
  expect((await linesOf(text)).map((line) => line.text)).toEqual(expected);
});

test("a file of many chunks has the lines that its text has", async () => {
  const text = Array.from({ length: 60_000 }, (_, index) => `${index} größer ${"x".repeat(index % 30)}`).join("\n");
  expect((await linesOf(text)).map((line) => line.text)).toEqual(text.split("\n"));
});

test("a long line is cut, and what is left out is counted, wherever chunks end", async () => {
  const lengths = fc.array(fc.integer({ min: 0, max: 700_000 }), { minLength: 1, maxLength: 4 });
  const check = async (sizes: number[]) => {
    const lines = await linesOf(`${sizes.map((size) => "x".repeat(size)).join("\r\n")}\n`, 100);
    expect(lines.map(({ text, omitted }) => text.length + omitted)).toEqual(
      // A carriage return after the cut is one of the characters that are left out.
      sizes.map((size, index) => (size > 100 && index < sizes.length - 1 ? size + 1 : size)),
    );
    expect(Math.max(...lines.map(({ text }) => text.length))).toBeLessThanOrEqual(100);
  };
  await fc.assert(fc.asyncProperty(lengths, check), {
    numRuns: process.env.PLIMSOLL_DEEP === "1" ? 200 : 15,
  });
});

test("a line is never cut inside a character", async () => {
  expect(await linesOf("ab😀cd", 3)).toEqual([{ text: "ab", omitted: 4 }]);
});

test("a line that was not read to its end in time is left out", async () => {
  const root = createTree({ file: `first\n${"x".repeat(600_000)}\nlast\n` });
  const handle = await open(join(root, "file"));
  const controller = new AbortController();
  const lines: CutText[] = [];
  const options = { encoding: "utf-8", maxLineLength: 10, signal: controller.signal };
  for await (const batch of openLines(handle, options)!.batches) {
    lines.push(...batch);
    controller.abort();
  }
  await handle.close();
  expect(lines).toEqual([{ text: "first", omitted: 0 }]);
});
