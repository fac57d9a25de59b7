import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { copyTree, removeTree } from "./folder-tree.ts";
import { openFolder } from "./open-folder.ts";

const platform = Object.getOwnPropertyDescriptor(process, "platform")!;

let base: string;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-tree-")));
  mkdirSync(join(base, "outside"));
  writeFileSync(join(base, "outside/f"), "theirs");
  mkdirSync(join(base, "tree/deep/er"), { recursive: true });
  writeFileSync(join(base, "tree/deep/er/f"), "x", { mode: 0o750 });
  symlinkSync("../outside", join(base, "tree/link"));
});
afterEach(() => {
  Object.defineProperty(process, "platform", platform);
  rmSync(base, { recursive: true, force: true });
});

describe.each(process.platform === "linux" ? ["linux", "darwin"] : [process.platform])("on %s", (name) => {
  beforeEach(() => Object.defineProperty(process, "platform", { value: name }));

  test("removes a folder and its links, not what these lead to", async () => {
    await removeTree(join(base, "tree"), { first: "f" });
    await removeTree(join(base, "tree"));
    await removeTree(join(base, "missing/tree"));
    expect(readdirSync(base)).toEqual(["outside"]);
    expect(readdirSync(join(base, "outside"))).toEqual(["f"]);
  });

  test("removes a link instead of the folder that it leads to", async () => {
    await removeTree(join(base, "tree/link"), { first: "f" });
    expect(existsSync(join(base, "tree/link"))).toBe(false);
    expect(readdirSync(join(base, "outside"))).toEqual(["f"]);
  });

  test("copies a folder with its modes and links", async () => {
    chmodSync(join(base, "tree/deep"), 0o750);
    mkdirSync(join(base, "copy"));
    const [from, to] = [openFolder(base, { root: base })!, openFolder(join(base, "copy"), { root: base })!];
    await copyTree("tree", { from, to });
    await expect(copyTree("tree", { from, to })).rejects.toThrow();
    from.close();
    to.close();
    expect(readFileSync(join(base, "copy/tree/deep/er/f"), "utf8")).toBe("x");
    expect(statSync(join(base, "copy/tree/deep/er/f")).mode & 0o777).toBe(0o750);
    expect(statSync(join(base, "copy/tree/deep")).mode & 0o777).toBe(0o750);
    expect(readlinkSync(join(base, "copy/tree/link"))).toBe("../outside");
    expect(lstatSync(join(base, "copy/tree/link")).isSymbolicLink()).toBe(true);
  });
});

test.runIf(process.platform === "linux")("removes names that are not UTF-8", async () => {
  execFileSync("sh", ["-c", "mkdir \"$(printf 'd\\377')\" && touch \"$(printf 'd\\377/f\\376')\""], {
    cwd: join(base, "tree"),
  });
  await removeTree(join(base, "tree"));
  expect(readdirSync(base)).toEqual(["outside"]);
});
