import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runCli, type World } from "../run-cli.ts";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "plimsoll-count-"));
  for (let index = 1; index <= 25; index++) writeFileSync(join(directory, `f${index}`), "x".repeat(index * 4));
});
afterAll(() => rmSync(directory, { recursive: true }));

async function run(args: readonly string[], world: Partial<World> & { isTTY?: boolean }) {
  let text = "";
  const write = (part: string) => {
    text += part;
  };
  const code = await runCli(["count", ...args], {
    env: { NO_COLOR: "1" },
    stdin: Readable.from([]),
    stdinKind: "other",
    cwd: () => directory,
    stdout: { isTTY: world.isTTY === true, write },
    stderr: { write },
    ...world,
  });
  return { code, lines: text.trimEnd().split("\n") };
}

async function count(isTTY: boolean, ...args: string[]): Promise<string[]> {
  const { code, lines } = await run([".", "--counter", "bytes/4", ...args], { isTTY });
  expect(code).toBe(0);
  return lines;
}

test("a terminal shows the twenty largest files, one line for the rest, and the total of all", async () => {
  const lines = await count(true);
  expect(lines).toHaveLength(1 + 20 + 1 + 1);
  expect(lines[1]).toMatch(/^ +25 +100 +f25$/);
  expect(lines[20]).toMatch(/^ +6 +24 +f6$/);
  expect(lines[21]).toMatch(/^ +\.\.\. and 5 more \(--all\)$/);
  expect(lines[22]).toMatch(/^ +325 +1,300 +total of 25 files$/);
});

test("every file is listed with --all or without a terminal", async () => {
  expect(await count(true, "--all")).toHaveLength(27);
  expect(await count(false)).toHaveLength(27);
});

test("without a file, piped input is counted, or else the directory", async () => {
  const input = (stdinKind: World["stdinKind"]) =>
    run(["--counter", "bytes/4"], { stdin: Readable.from([Buffer.from("12345678")]), stdinKind });
  expect((await input("piped")).lines.at(-2)).toMatch(/^ +2 +8 +-$/);
  for (const kind of ["other", "directory"] as const)
    expect((await input(kind)).lines.at(-1)).toMatch(/total of 25 files$/);
});

test("standard input that is a directory is a failure, not an empty text", async () => {
  const { code, lines } = await run(["-", "--counter", "bytes/4"], { stdinKind: "directory" });
  expect(code).toBe(1);
  expect(lines[0]).toBe("plimsoll: -: is a directory");
});

test("text that would hang an exact counter is refused; other counters count it", async () => {
  const world = () => ({ stdin: Readable.from([Buffer.alloc(11 * 1024 * 1024, "a")]) });
  const exact = await run(["-", "--counter", "bytes/4,exact:o200k"], world());
  expect(exact.code).toBe(1);
  expect(exact.lines[0]).toBe(
    "plimsoll: -: more than 10 MB, exact:o200k counts at most 10 MB: split the file, or choose an estimate",
  );
  expect((await run(["-", "--counter", "bytes/4"], world())).code).toBe(0);
});
