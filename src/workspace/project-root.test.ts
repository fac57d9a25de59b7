import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { projectRoot } from "./project-root.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "plimsoll-root-"));
});
afterEach(() => rmSync(root, { recursive: true }));

function make(path: string): string {
  mkdirSync(join(root, path), { recursive: true });
  return join(root, path);
}

test("the nearest folder with .plimsoll or .git is the root", () => {
  make("home/team/.git");
  make("home/team/part/.plimsoll");
  expect(projectRoot(make("home/team/other/src"), join(root, "home"))).toBe(join(root, "home/team"));
  expect(projectRoot(make("home/team/part/src"), join(root, "home"))).toBe(join(root, "home/team/part"));
});

test("without either the folder itself is the root, and nothing above HOME is looked at", () => {
  make(".git");
  const cwd = make("home/team");
  expect(projectRoot(cwd, join(root, "home"))).toBe(cwd);
  expect(projectRoot(cwd, `${join(root, "home")}/`)).toBe(cwd);
  expect(projectRoot(`${cwd}/`, join(root, "elsewhere"))).toBe(root);
});
