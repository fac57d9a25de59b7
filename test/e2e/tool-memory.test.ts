// @module-tag deep
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const script = new URL("tool-memory.mjs", import.meta.url).pathname;

/** In a process of its own: what other tests of a worker left behind, or gave back, would be counted here. */
function measure(large: Buffer, tool: string, args: object): { grown: number; items: unknown[] } {
  const root = mkdtempSync(join(tmpdir(), "tool-memory-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  writeFileSync(join(root, "small.txt"), "needle\n");
  writeFileSync(join(root, "large.txt"), large);
  return JSON.parse(execFileSync(process.execPath, [script, root, tool, JSON.stringify(args)], { encoding: "utf8" }));
}

// Only Linux tells the most memory that a process had since it began.
test.runIf(process.platform === "linux")("a file of 100 MB is read in less memory than it has", () => {
  const line = "0123456789".repeat(99);
  const large = Buffer.alloc(100_000_000, `${line}012345678\n`);
  const { grown, items } = measure(large, "read_file", { start_line: 99_999 });
  expect(items).toEqual([`${line}012345678`, `${line}012345678`]);
  expect(grown).toBeLessThan(90);
});

test.runIf(process.platform === "linux")("a line of 100 MB is searched in less memory than it has", () => {
  const half = Buffer.alloc(50_000_000, "a");
  const { grown, items } = measure(Buffer.concat([half, Buffer.from("é needle "), half]), "search_content", {
    pattern: "needle",
  });
  expect(items).toEqual([{ path: "large.txt", line: 1, text: expect.stringMatching(/^…a+é needle a+…$/) }]);
  expect(grown).toBeLessThan(50);
});
