import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readScopeState } from "./scope-state.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "plimsoll-scope-"));
  for (const path of ["src/a.ts", "src/deep/b.ts", "docs/c.md", "top.ts", "node_modules/x/i.js"]) write(path, path);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

/** Returns whether a change is seen in a scope. */
async function sees(scope: readonly string[], change: () => void): Promise<boolean> {
  const before = await readScopeState(root, scope);
  expect(await readScopeState(root, scope)).toBe(before);
  change();
  return (await readScopeState(root, scope)) !== before;
}

test.each([
  "src/**",
  "src/*.ts",
  "src",
  "src/",
  "./src/a.ts",
  "/src/a.ts",
  "**",
  ".",
  "**/*.ts",
  "{docs,src}/**",
  "src/?.ts",
])("a change of src/a.ts is seen in %s", async (scope) => {
  expect(await sees([scope], () => write("src/a.ts", "new"))).toBe(true);
});

test.each(["docs/**", "src/deep", "a.ts", "src/*.md", "top.ts", "../**", "/etc/**", "no/such/*"])(
  "a change of src/a.ts is not seen in %s",
  async (scope) => {
    expect(await sees([scope], () => write("src/a.ts", "new"))).toBe(false);
  },
);

test("a new file, a removed file and a new link are changes", async () => {
  expect(await sees(["src/**"], () => write("src/new.ts", ""))).toBe(true);
  expect(await sees(["src/**"], () => rmSync(join(root, "src/deep/b.ts")))).toBe(true);
  expect(await sees(["src/**"], () => symlinkSync("/etc/passwd", join(root, "src/link")))).toBe(true);
  expect(await sees(["src/a.ts"], () => chmodSync(join(root, "src/a.ts"), 0o755))).toBe(true);
  expect(await sees(["made/later.ts"], () => write("made/later.ts", ""))).toBe(true);
});

test("the same bytes written again are no change", async () => {
  const again = () => {
    write("src/a.ts", "src/a.ts");
    utimesSync(join(root, "src/a.ts"), 1, 1);
  };
  expect(await sees(["src/**"], again)).toBe(false);
});

test("a folder whose name looks like a pattern is found by its name", async () => {
  expect(await sees(["app/[id]/page.tsx"], () => write("app/[id]/page.tsx", ""))).toBe(true);
});

test("a file that git ignores counts if the scope names it, and installed packages do not", async () => {
  write(".gitignore", "build\n");
  expect(await sees(["build/**"], () => write("build/out.js", ""))).toBe(true);
  expect(await sees(["**"], () => write("node_modules/x/i.js", "new"))).toBe(false);
  expect(await sees(["node_modules/x/**"], () => write("node_modules/x/i.js", "newer"))).toBe(true);
});
