import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findSigns } from "./find-signs.ts";
import { readProjectTree } from "./project-tree.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "plimsoll-signs-"));
});
afterEach(() => rmSync(root, { recursive: true }));

function put(...paths: string[]): void {
  for (const path of paths) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), "");
  }
}

function git(...args: string[]): void {
  execFileSync("git", args, { cwd: root, stdio: "ignore" });
}

const node = ["package.json"];
const python = ["pyproject.toml", "*.py"];

async function signs(...lists: (readonly string[])[]): Promise<readonly (string | undefined)[]> {
  return findSigns(lists, await readProjectTree(root, process.env));
}

describe.each(["no repository", "a new repository", "tracked files"])("with %s", (kind) => {
  async function found(): Promise<readonly (string | undefined)[]> {
    if (kind !== "no repository") git("init", "-q");
    if (kind === "tracked files") git("add", "-A");
    return signs(node, python);
  }

  test("finds a file in the root, and nothing for the other language", async () => {
    put("package.json", "src/a.ts");
    expect(await found()).toEqual(["package.json", undefined]);
  });

  test("finds a file in a folder of the root", async () => {
    put("api/pyproject.toml", "web/package.json");
    expect(await found()).toEqual(["web/package.json", "api/pyproject.toml"]);
  });

  test("finds a file two folders deep, and none below", async () => {
    put("packages/api/pyproject.toml", "packages/web/src/package.json");
    expect(await found()).toEqual([undefined, "packages/api/pyproject.toml"]);
  });

  test("prefers the earlier pattern, then the shallower file", async () => {
    put("app/pyproject.toml", "a.py", "app/b.py");
    expect((await found())[1]).toBe("app/pyproject.toml");
    rmSync(join(root, "app/pyproject.toml"));
    expect((await signs(python))[0]).toBe(kind === "tracked files" ? "app/pyproject.toml" : "a.py");
  });

  test("ignores tests, examples, other people's code and hidden folders", async () => {
    put("test/a.py", "examples/pyproject.toml", "node_modules/package.json", ".github/release.py", "scripts/x.py");
    expect(await found()).toEqual([undefined, undefined]);
  });

  test("ignores what git ignores", async () => {
    writeFileSync(join(root, ".gitignore"), "*.sql\nlocal/\n/scratch.py\n");
    put("scratch.py", "local/b.py", "local/package.json");
    expect(await found()).toEqual([undefined, undefined]);
  });
});

test("finds a file that is not tracked yet beside tracked files", async () => {
  put("package.json");
  git("init", "-q");
  git("add", "-A");
  put("app/main.py");
  expect(await signs(python, node)).toEqual(["app/main.py", "package.json"]);
});

test("finds the same in a folder of a repository", async () => {
  put("package.json", "sub/pyproject.toml");
  git("init", "-q");
  git("add", "-A");
  const tree = await readProjectTree(join(root, "sub"), process.env);
  expect(await findSigns([node, python], tree)).toEqual([undefined, "pyproject.toml"]);
});
