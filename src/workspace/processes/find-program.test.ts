import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { findProgram } from "./find-program.ts";

function createTree(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "find-program-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

test("the first program of that name on PATH is found, with its whole path", async () => {
  const root = createTree({
    "a/other": "",
    "b/tool": "#!/bin/sh\n",
    "c/tool": "#!/bin/sh\n",
    "d/tool/file": "",
  });
  for (const path of ["b/tool", "c/tool"]) chmodSync(join(root, path), 0o755);
  const path = ["a", "d", "b", "c"].map((name) => join(root, name)).join(delimiter);
  expect(await findProgram("tool", { PATH: path })).toBe(join(root, "b/tool"));
  expect(await findProgram("missing", { PATH: path })).toBeUndefined();
  expect(await findProgram("tool", {})).toBeUndefined();
});

test("a file that may not be run is no program, and the working directory is not looked in", async () => {
  const root = createTree({ "a/tool": "" });
  expect(await findProgram("tool", { PATH: join(root, "a") })).toBeUndefined();
  expect(await findProgram("package.json", { PATH: `.${delimiter}${delimiter}src` })).toBeUndefined();
});
