import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runCli } from "../run-cli.ts";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "plimsoll-count-"));
  for (let index = 1; index <= 25; index++)
    writeFileSync(join(directory, `f${index}`), "x".repeat(index * 4));
});
afterAll(() => rmSync(directory, { recursive: true }));

async function count(isTTY: boolean, ...args: string[]): Promise<string[]> {
  let text = "";
  const write = (part: string) => {
    text += part;
  };
  const world = { env: { NO_COLOR: "1" }, stdin: Readable.from([]), cwd: () => directory, stderr: { write } };
  const code = await runCli(["count", ".", "--counter", "bytes/4", ...args], {
    ...world,
    stdout: { isTTY, write },
  });
  expect(code).toBe(0);
  return text.trimEnd().split("\n");
}

test("on a terminal the twenty largest files stand first, the rest is one line, the total has all", async () => {
  const lines = await count(true);
  expect(lines).toHaveLength(1 + 20 + 1 + 1);
  expect(lines[1]).toMatch(/^ +25 +100 +f25$/);
  expect(lines[20]).toMatch(/^ +6 +24 +f6$/);
  expect(lines[21]).toMatch(/^ +\.\.\. and 5 more \(--all\)$/);
  expect(lines[22]).toMatch(/^ +325 +1,300 +total of 25 files$/);
});

test("with --all, or when nobody watches, every file is listed", async () => {
  expect(await count(true, "--all")).toHaveLength(27);
  expect(await count(false)).toHaveLength(27);
});
