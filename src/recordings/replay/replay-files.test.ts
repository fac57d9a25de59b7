import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterAll, expect, test } from "vitest";
import { findSessionFiles } from "../places.ts";
import { createReplayProgress } from "./replay-files.ts";

function watched(terminal: boolean) {
  const clock = { ms: 0 };
  const [shown, noted]: [string[], string[]] = [[], []];
  const output = {
    terminal,
    progress: (text: string) => void shown.push(text),
    note: (text: string) => void noted.push(text),
  };
  return { clock, shown, noted, progress: createReplayProgress(output, () => clock.ms) };
}

const run = { what: "session 1 of 2, rfc at 64,000", file: "a.jsonl", calls: 5_000 };

test("a long session shows at which call it is, ten times a second at most", async () => {
  const { clock, shown, progress } = watched(true);
  const pause = progress.start(run);
  expect(pause(1)).toBeUndefined();
  clock.ms = 150;
  await pause(1_200);
  clock.ms = 200;
  expect(pause(1_300)).toBeUndefined();
  expect(shown).toEqual([
    "session 1 of 2, rfc at 64,000: a.jsonl",
    "session 1 of 2, rfc at 64,000, call 1,200 of 5,000: a.jsonl",
  ]);
});

test("without a terminal there is at most one line per session and policy, and one in ten seconds", async () => {
  const { clock, noted, progress } = watched(false);
  progress.start({ ...run, file: "at once" });
  clock.ms = 10_000;
  await progress.start(run)(100);
  clock.ms = 15_000;
  progress.start({ ...run, file: "too soon" });
  clock.ms = 21_000;
  progress.start({ ...run, calls: 1 });
  expect(noted).toEqual([
    "session 1 of 2, rfc at 64,000: a.jsonl, 5,000 calls",
    "session 1 of 2, rfc at 64,000: a.jsonl, 1 call",
  ]);
});

test("on a terminal the line that changes is enough", () => {
  const { clock, noted, progress } = watched(true);
  clock.ms = 60_000;
  progress.start(run);
  expect(noted).toEqual([]);
});

const scratch = mkdtempSync(join(tmpdir(), "plimsoll-sessions-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

for (const path of ["b/2.jsonl", "b/1.json", "b/c/3.jsonl", "b/readme.md", "a.log", ".gitignore"]) {
  mkdirSync(join(scratch, path, ".."), { recursive: true });
  writeFileSync(join(scratch, path), "*.jsonl");
}
symlinkSync(scratch, join(scratch, "b/circle"));

async function found(...paths: string[]): Promise<string[]> {
  const { files } = findSessionFiles(paths, scratch);
  return files.map(({ path }) => relative(scratch, path));
}

test("a directory gives its .jsonl and .json files by name, also ignored ones, without following links", async () => {
  expect(await found("b")).toEqual(["b/1.json", "b/2.jsonl", "b/c/3.jsonl"]);
});

test("a file that is named is taken whatever its name, and each file once", async () => {
  expect(await found("a.log", "b/2.jsonl", ".")).toEqual(["a.log", "b/2.jsonl", "b/1.json", "b/c/3.jsonl"]);
});

test("a missing path is left to the reader to report", async () => {
  expect(await found("none.jsonl")).toEqual(["none.jsonl"]);
});

test.skipIf(process.getuid?.() === 0)("a directory that cannot be listed is told (not as root)", async () => {
  mkdirSync(join(scratch, "closed"));
  chmodSync(join(scratch, "closed"), 0);
  const { files, unreadable } = findSessionFiles(["closed"], scratch);
  chmodSync(join(scratch, "closed"), 0o700);
  expect(files).toEqual([]);
  expect(unreadable).toEqual([{ path: join(scratch, "closed"), reason: "cannot be listed: no permission to read it" }]);
});
