import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { changeFile } from "./change-file.ts";
import { removeEmptyFolders } from "./folder-tree.ts";
import { openFolder } from "./open-folder.ts";
import { replaceFile } from "./replace-file.ts";

const isLinux = process.platform === "linux";
const platform = Object.getOwnPropertyDescriptor(process, "platform")!;

let base: string;
let root: string;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-folder-")));
  root = join(base, "root");
  mkdirSync(join(root, "a/b"), { recursive: true });
  mkdirSync(join(base, "outside/b"), { recursive: true });
  writeFileSync(join(base, "outside/f"), "theirs");
});
afterEach(() => {
  Object.defineProperty(process, "platform", platform);
  rmSync(base, { recursive: true, force: true });
});

/** What another process does: `a` becomes a link that leads out. */
function swap(): void {
  renameSync(join(root, "a"), join(root, "moved"));
  symlinkSync("../outside", join(root, "a"));
}

function expectNothingOutside(): void {
  expect(readdirSync(join(base, "outside"), { recursive: true }).sort()).toEqual(["b", "f"]);
  expect(readFileSync(join(base, "outside/f"), "utf8")).toBe("theirs");
}

const changed = { code: "write_failed", message: "a folder of its path was replaced meanwhile" };
const bytes = Buffer.from("ours");

// Every system can use a folder by its name, so both ways are tried on Linux.
describe.each(isLinux ? ["linux", "darwin"] : [process.platform])("on %s", (name) => {
  beforeEach(() => Object.defineProperty(process, "platform", { value: name }));

  test("opens a folder, makes missing ones, and sees a missing one", () => {
    expect(openFolder(join(root, "new/er"), { root })).toBeUndefined();
    const folder = openFolder(join(root, "new/er"), { root, mode: 0o700 })!;
    writeFileSync(folder.at("f"), "x");
    folder.close();
    expect(readFileSync(join(root, "new/er/f"), "utf8")).toBe("x");
  });

  test.each([
    ["a link", "a"],
    ["a folder behind a link", "a/b"],
    ["a new folder behind a link", "a/new"],
    ["a file", "file"],
    ["a folder outside", "../outside"],
  ])("refuses %s", (_what, path) => {
    swap();
    writeFileSync(join(root, "file"), "");
    expect(() => openFolder(join(root, path), { root, mode: 0o700 })).toThrow(expect.objectContaining(changed));
    expectNothingOutside();
  });

  test("a swap after the folder was opened redirects no write", () => {
    const folder = openFolder(join(root, "a"), { root })!;
    swap();
    const write = () => replaceFile({ folder, name: "f" }, { bytes, expected: undefined });
    if (name === "linux") {
      expect(write()).toBe(true);
      expect(readFileSync(join(root, "moved/f"), "utf8")).toBe("ours");
    } else expect(write).toThrow(expect.objectContaining(changed));
    folder.close();
    expectNothingOutside();
  });

  test("a swap after the folder was opened redirects no deletion", () => {
    writeFileSync(join(root, "a/f"), "ours");
    const folder = openFolder(join(root, "a"), { root })!;
    swap();
    const remove = () => replaceFile({ folder, name: "f" }, { bytes: undefined, expected: undefined });
    // The file is not in the expected state.
    if (name === "linux") expect(remove()).toBe(false);
    else expect(remove).toThrow(expect.objectContaining(changed));
    folder.close();
    expectNothingOutside();
  });

  test.each([1, 2])("changeFile refuses a folder that is swapped at its plan %i", async (turn) => {
    let turns = 0;
    const change = () => {
      if (++turns === turn) swap();
      return "ours";
    };
    const env = { XDG_STATE_HOME: join(base, "state") };
    await expect(changeFile("a/f", { root, env, change })).rejects.toMatchObject({ ...changed, file: "a/f" });
    expectNothingOutside();
  });

  test("removes empty folders in the root only", async () => {
    mkdirSync(join(root, "x/y"), { recursive: true });
    await removeEmptyFolders(join(root, "x/y/f"), root);
    expect(existsSync(join(root, "x"))).toBe(false);
    swap();
    await removeEmptyFolders(join(root, "a/b/f"), root);
    expectNothingOutside();
  });
});

// Root may list any folder.
test.runIf(isLinux && process.getuid?.() !== 0)("opens a folder below one that may be entered but not listed", () => {
  chmodSync(join(root, "a"), 0o300);
  const folder = openFolder(join(root, "a/b"), { root: "/" })!;
  chmodSync(join(root, "a"), 0o700);
  writeFileSync(folder.at("f"), "x");
  folder.close();
  expect(readFileSync(join(root, "a/b/f"), "utf8")).toBe("x");
});
