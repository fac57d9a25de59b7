import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { readSource } from "./source.ts";
import { checkWrites, findWrites, writers } from "./writes.ts";

const subjects = (text: string, path = "src/cli/x.ts") =>
  checkWrites(readSource(path, text)).map(({ subject }) => subject);

test.each([
  ['import { writeFile, readFile } from "node:fs/promises"; writeFile;', ["writeFile"]],
  ['import { rmSync as remove, mkdtempSync } from "node:fs"; remove;', ["rmSync", "mkdtempSync"]],
  ['import * as fs from "node:fs"; fs.rmSync("x"); fs.statSync("x"); fs.promises;', ["rmSync", "promises"]],
  ['import fs from "fs/promises"; fs.rm("x");', ["rm"]],
  ['export const load = () => import("node:fs/promises");', ['import("node:fs/promises")']],
  ['import { open } from "node:fs/promises"; await open("x", "wx", 0o600);', ['open "wx"']],
  ['import { openSync } from "node:fs"; openSync("x", "r+");', ['open "r+"']],
  ['import { constants, openSync } from "node:fs"; openSync("x", constants.O_WRONLY);', ["O_WRONLY"]],
])("finds a write in %s", (text, found) => {
  expect(subjects(text)).toEqual(found);
});

test("allows reading, tests, and the files that are listed", () => {
  expect(subjects('import { open, readFile, stat } from "node:fs/promises"; await open("x", "r");')).toEqual([]);
  const write = 'import { rm } from "node:fs/promises"; rm;';
  expect(subjects(write, "src/cli/x.test.ts")).toEqual([]);
  expect(subjects(write, "src/host/files/lock.ts")).toEqual([]);
});

test("every listed file still writes something", () => {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const idle = Object.keys(writers).filter((path) => {
    return findWrites(readSource(path, readFileSync(`${root}${path}`, "utf8"))).length === 0;
  });
  expect(idle).toEqual([]);
});
