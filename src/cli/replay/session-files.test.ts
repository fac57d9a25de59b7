import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterAll, expect, test } from "vitest";
import { findSessionFiles } from "./session-files.ts";

const scratch = mkdtempSync(join(tmpdir(), "plimsoll-sessions-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

for (const path of ["b/2.jsonl", "b/1.json", "b/c/3.jsonl", "b/readme.md", "a.log", ".gitignore"]) {
  mkdirSync(join(scratch, path, ".."), { recursive: true });
  writeFileSync(join(scratch, path), "*.jsonl");
}
symlinkSync(scratch, join(scratch, "b/circle"));

async function found(...paths: string[]): Promise<string[]> {
  const { files } = await findSessionFiles(paths, scratch);
  return files.map((file) => relative(scratch, file));
}

test("a directory gives its .jsonl and .json files by name, whatever .gitignore says, without following links", async () => {
  expect(await found("b")).toEqual(["b/1.json", "b/2.jsonl", "b/c/3.jsonl"]);
});

test("a file that is named is taken whatever its name, and each file once", async () => {
  expect(await found("a.log", "b/2.jsonl", ".")).toEqual(["a.log", "b/2.jsonl", "b/1.json", "b/c/3.jsonl"]);
});

test("a path that is not there is left for the reader to tell", async () => {
  expect(await found("none.jsonl")).toEqual(["none.jsonl"]);
});

test.skipIf(process.getuid?.() === 0)("a directory that cannot be listed is told (not as root)", async () => {
  mkdirSync(join(scratch, "closed"));
  chmodSync(join(scratch, "closed"), 0);
  const { files, unreadable } = await findSessionFiles(["closed"], scratch);
  chmodSync(join(scratch, "closed"), 0o700);
  expect(files).toEqual([]);
  expect(unreadable).toEqual([{ path: join(scratch, "closed"), reason: "cannot be listed (EACCES)" }]);
});
