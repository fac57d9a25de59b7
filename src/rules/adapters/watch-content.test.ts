import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type WatchedFolders, watchFolders } from "./watch-content.ts";

let root: string;
let changes: number;
let watching: WatchedFolders;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "plimsoll-watch-"));
  changes = 0;
  const onError = (error: unknown) => {
    throw error;
  };
  watching = watchFolders({ onChange: () => changes++, onError });
});
afterEach(() => {
  watching.update([]);
  rmSync(root, { recursive: true, force: true });
});

const at = (path: string) => join(root, path);

/** Does it again until it is told: Node begins to watch what lies below a folder at a moment of its own. */
async function isTold(act: () => void): Promise<boolean> {
  await sleep(100);
  changes = 0;
  for (let times = 0; times < 100 && changes === 0; times++) {
    act();
    for (let looks = 0; looks < 20 && changes === 0; looks++) await sleep(10);
  }
  return changes > 0;
}

async function changesAfter(act: () => void): Promise<number> {
  await sleep(100);
  changes = 0;
  act();
  await sleep(300);
  return changes;
}

test("a folder that is not there is waited for in the nearest one, and nothing else there counts", {
  tags: ["deep"],
}, async () => {
  mkdirSync(at("other"));
  watching.update([at("a/b")]);
  expect(await changesAfter(() => writeFileSync(at("other/x"), ""))).toBe(0);
  expect(await changesAfter(() => writeFileSync(at("x"), ""))).toBe(0);
  expect(await isTold(() => mkdirSync(at("a"), { recursive: true }))).toBe(true);
  watching.update([at("a/b")]);
  expect(await changesAfter(() => writeFileSync(at("a/x"), ""))).toBe(0);
  expect(await isTold(() => mkdirSync(at("a/b/c"), { recursive: true }))).toBe(true);
  watching.update([at("a/b")]);
  expect(await isTold(() => writeFileSync(at("a/b/c/x"), ""))).toBe(true);
});

test("a folder that was replaced is watched again, and one that is no longer named is not", async () => {
  mkdirSync(at("a"));
  watching.update([at("a")]);
  const replace = () => {
    rmSync(at("a"), { recursive: true });
    mkdirSync(at("between"), { recursive: true });
    mkdirSync(at("a"));
  };
  expect(await isTold(replace)).toBe(true);
  watching.update([at("a")]);
  expect(await isTold(() => writeFileSync(at("a/x"), ""))).toBe(true);
  watching.update([at("between")]);
  expect(await changesAfter(() => writeFileSync(at("a/x"), "2"))).toBe(0);
});
