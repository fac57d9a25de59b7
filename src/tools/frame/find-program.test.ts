import { chmodSync } from "node:fs";
import { delimiter, join } from "node:path";
import { expect, test } from "vitest";
import { findProgram } from "./find-program.ts";
import { createTree } from "./temporary-tree.contract.ts";

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
