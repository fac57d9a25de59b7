import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ContextError } from "../../core/errors.ts";
import { attemptChange, type ChangeOptions, changeFile } from "./change-file.ts";

let base: string;
let root: string;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-change-")));
  root = join(base, "root");
  mkdirSync(root);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const at = (path: string) => join(root, path);
const read = (path: string) => readFileSync(at(path), "latin1");
const set = (content: string | undefined) => () => content;
const append = (current: string | undefined) => `${current ?? ""}+`;
const env = () => ({ XDG_STATE_HOME: join(base, "state") });
const change = (path: string, to: ChangeOptions["change"], dryRun = false) =>
  changeFile(path, { root, change: to, dryRun, env: env() });
const deadPid = () => spawnSync(process.execPath, ["-e", ""]).pid;

describe("writing", () => {
  test("creates a file with its directories, changes it and deletes it", async () => {
    expect(await change("a/b/c.md", set("x"))).toEqual({
      path: "a/b/c.md",
      before: undefined,
      after: "x",
      written: true,
    });
    expect(await change(at("a/b/c.md"), append)).toMatchObject({ before: "x", after: "x+", written: true });
    expect(read("a/b/c.md")).toBe("x+");
    expect(await change("a/b/c.md", set(undefined))).toMatchObject({ before: "x+", written: true });
    expect(readdirSync(at("a/b"))).toEqual([]);
  });

  test("writes nothing and takes no lock if nothing changes", async () => {
    writeFileSync(at("f"), "x");
    utimesSync(at("f"), 1, 1);
    expect(await change("f", (current) => current)).toEqual({
      path: "f",
      before: "x",
      after: "x",
      written: false,
    });
    expect(await change("absent/f", set(undefined))).toMatchObject({ written: false });
    expect(statSync(at("f")).mtimeMs).toBe(1_000);
    expect(existsSync(at("absent"))).toBe(false);
    expect(existsSync(join(base, "state"))).toBe(false);
  });

  test("a dry run reports the change and writes nothing", async () => {
    expect(await change("a/f", append, true)).toEqual({
      path: "a/f",
      before: undefined,
      after: "+",
      written: false,
    });
    expect(readdirSync(base)).toEqual(["root"]);
    expect(readdirSync(root)).toEqual([]);
  });

  test("keeps every byte", async () => {
    const bytes = Buffer.from(Array.from({ length: 255 }, (_, index) => index + 1));
    writeFileSync(at("f"), bytes);
    await change("f", append);
    expect(readFileSync(at("f"))).toEqual(Buffer.concat([bytes, Buffer.from("+")]));
  });

  test("a text that is not a byte string is a bug, and the file is not changed", async () => {
    writeFileSync(at("f"), "x");
    await expect(change("f", set("日本"))).rejects.toThrow(TypeError);
    expect(read("f")).toBe("x");
    expect(readdirSync(root)).toEqual(["f"]);
  });

  test.each([0o600, 0o640, 0o755])("mode %o is kept", async (mode) => {
    writeFileSync(at("f"), "x");
    chmodSync(at("f"), mode);
    await change("f", append);
    expect(statSync(at("f")).mode & 0o7777).toBe(mode);
  });

  test("a new file has mode 0644 less the umask", async () => {
    await change("f", append);
    expect(statSync(at("f")).mode & 0o777).toBe(0o644 & ~process.umask());
  });

  test("removes locks and temporary files afterwards, even if the change throws", async () => {
    await change("f", append);
    await expect(
      change("f", () => {
        throw new RangeError("mine");
      }),
    ).rejects.toThrow("mine");
    expect(readdirSync(root)).toEqual(["f"]);
    expect(readdirSync(join(base, "state/plimsoll/locks"))).toEqual([]);
  });

  test("many changes at once in one process all count", async () => {
    await Promise.all(Array.from({ length: 20 }, () => change("f", append)));
    expect(read("f")).toBe("+".repeat(20));
  });

  test("does not lose what an editor saves in between", async () => {
    writeFileSync(at("f"), "old");
    let calls = 0;
    const result = await change("f", (current) => {
      calls++;
      // The first call only plans. The second call is under the lock.
      if (calls === 2) writeFileSync(at("f"), "saved");
      return `${current}+`;
    });
    expect(read("f")).toBe("saved+");
    expect(result).toMatchObject({ before: "saved", after: "saved+", written: true });
  });

  test("does not overwrite a file that somebody else creates in between", async () => {
    let calls = 0;
    await change("f", (current) => {
      calls++;
      if (calls === 2) writeFileSync(at("f"), "theirs");
      return `${current ?? ""}+`;
    });
    expect(read("f")).toBe("theirs+");
  });

  test("a program that keeps saving is an error, not an endless loop", async () => {
    let count = 0;
    const result = change("f", () => {
      writeFileSync(at("f"), `${++count}`);
      return "+";
    });
    await expect(result).rejects.toMatchObject({ code: "write_failed", file: "f" });
    expect(readdirSync(root)).toEqual(["f"]);
  });
});

describe("the facts of a plan", () => {
  test("are those of the content that was written, after a lost race too", async () => {
    let calls = 0;
    const done = await attemptChange("f", {
      ...{ root, env: env() },
      plan: (current) => {
        if (++calls === 2) writeFileSync(at("f"), "saved");
        return { after: `${current ?? ""}+`, facts: `from ${current}` };
      },
    });
    expect(done).toMatchObject({ facts: "from saved", change: { after: "saved+", written: true } });
  });

  test("come back with the plan's own problem, and nothing is written", async () => {
    const problem = new ContextError("refused_target", "no");
    const done = await attemptChange("f", { root, env: env(), plan: () => ({ problem, facts: 1 }) });
    expect(done).toEqual({ facts: 1, problem: expect.objectContaining({ message: "no", file: "f" }) });
    expect(readdirSync(root)).toEqual([]);
  });

  test("come back with a problem of the file, and are absent if it cannot be read", async () => {
    writeFileSync(at("f"), "x", { mode: 0o400 });
    mkdirSync(at("folder"));
    const plan = () => ({ after: "y", facts: 1 });
    expect(await attemptChange("f", { root, env: env(), plan })).toMatchObject({ facts: 1, problem: { file: "f" } });
    const unread = await attemptChange("folder", { root, env: env(), plan });
    expect(unread).toMatchObject({ facts: undefined, problem: { file: "folder" } });
  });
});

describe("temporary files of killed runs", () => {
  test("are removed even if nothing changes, but not files of others and of running processes", async () => {
    const mine = [`.f.plimsoll-${deadPid()}-1.tmp`, `.f.plimsoll-${process.pid}-3.tmp`];
    const others = [".f.plimsoll-1-1.tmp", `.g.plimsoll-${deadPid()}-1.tmp`, ".f.plimsoll-x-1.tmp"];
    for (const name of ["f", ...mine, ...others]) writeFileSync(at(name), "x");
    expect(await change("f", (current) => current)).toMatchObject({ written: false });
    expect(readdirSync(root).sort()).toEqual(["f", ...others].sort());
  });

  test("a file with the own process id is not an obstacle", async () => {
    writeFileSync(at(`.f.plimsoll-${process.pid}-1.tmp`), "left");
    await change("f", set("x"));
    expect(readdirSync(root)).toEqual(["f"]);
  });
});

describe("links", () => {
  test("follows a link inside the root and keeps it", async () => {
    mkdirSync(at("docs"));
    writeFileSync(at("docs/real.md"), "x");
    symlinkSync("docs/real.md", at("CLAUDE.md"));
    symlinkSync("docs", at("linked"));
    await change("CLAUDE.md", append);
    await change("linked/real.md", append);
    await change("linked/new.md", append);
    expect(read("docs/real.md")).toBe("x++");
    expect(read("docs/new.md")).toBe("+");
    expect(lstatSync(at("CLAUDE.md")).isSymbolicLink()).toBe(true);
  });

  test("a link to a file that does not exist yet creates that file", async () => {
    mkdirSync(at("docs"));
    symlinkSync("docs/new.md", at("f"));
    await change("f", append);
    expect(read("docs/new.md")).toBe("+");
    expect(lstatSync(at("f")).isSymbolicLink()).toBe(true);
  });

  test.each([
    ["a link to a file outside", "f", () => symlinkSync("../outside/f", at("f"))],
    ["a link to nothing outside", "f", () => symlinkSync(join(base, "outside/new"), at("f"))],
    ["a directory link out of the root", "d/f", () => symlinkSync("../outside", at("d"))],
    ["a directory link to nothing outside", "d/f", () => symlinkSync("../nowhere", at("d"))],
    [
      "a chain of links out",
      "f",
      () => {
        symlinkSync("g", at("f"));
        symlinkSync("../outside/f", at("g"));
      },
    ],
    ["a path that climbs out", "../outside/f", () => {}],
    ["a link in a circle", "f", () => symlinkSync("f", at("f"))],
  ])("refuses %s, even in a dry run, and writes nothing", async (_name, path, prepare) => {
    mkdirSync(join(base, "outside"));
    writeFileSync(join(base, "outside/f"), "theirs");
    prepare();
    for (const dryRun of [true, false]) {
      await expect(change(path, append, dryRun)).rejects.toMatchObject({
        code: "refused_target",
        file: path,
      });
    }
    expect(readdirSync(base).sort()).toEqual(["outside", "root"]);
    expect(readdirSync(join(base, "outside"))).toEqual(["f"]);
    expect(readFileSync(join(base, "outside/f"), "utf8")).toBe("theirs");
  });

  test("a root that is itself a link does not lead out", async () => {
    symlinkSync("root", join(base, "alias"));
    await changeFile("f", { root: join(base, "alias"), change: append, env: env() });
    expect(read("f")).toBe("+");
  });
});

describe("refusals", () => {
  test("nothing is written into git's own folder, however it is spelled", async () => {
    for (const path of [".git/hooks/x", ".GIT/hooks/x", "git~1/x"]) {
      await expect(change(path, set("x"))).rejects.toMatchObject({ code: "refused_target", file: path });
    }
    await change("..x/a.md", set("x"));
    expect(readdirSync(root)).toEqual(["..x"]);
  });

  test.each([
    ["a directory", "is a directory", () => mkdirSync(at("f"))],
    ["a pipe", "is a pipe", () => spawnSync("sh", ["-c", "mkfifo f"], { cwd: root })],
    ["UTF-16 text", "is UTF-16", () => writeFileSync(at("f"), Buffer.from("\uFEFFabc", "utf16le"))],
    ["a binary file", "NUL", () => writeFileSync(at("f"), "a\0b")],
    [
      "a read-only file",
      "is read-only \\(mode 0444\\)",
      () => {
        writeFileSync(at("f"), "x");
        chmodSync(at("f"), 0o444);
      },
    ],
    ["a file where a directory should be", "a part of its path is not a directory", () => writeFileSync(at("d"), "x")],
  ])("refuses %s with the reason", async (name, reason, prepare) => {
    prepare();
    const path = name.includes("should be") ? "d/f" : "f";
    for (const dryRun of [true, false]) {
      await expect(change(path, append, dryRun)).rejects.toMatchObject({
        code: "refused_target",
        message: expect.stringMatching(reason),
        file: path,
      });
    }
    expect(readdirSync(root)).toHaveLength(1);
  });

  test("accepts a read-only file that needs no change", async () => {
    writeFileSync(at("f"), "x");
    chmodSync(at("f"), 0o444);
    expect(await change("f", (current) => current)).toMatchObject({ written: false });
  });

  test("if no directory can hold a lock, the error says what to do", async () => {
    writeFileSync(join(base, "state"), "in the way");
    const nowhere = { ...env(), TMPDIR: join(base, "state") };
    await expect(changeFile("f", { root, change: append, env: nowhere })).rejects.toMatchObject({
      code: "write_failed",
      file: "f",
      hint: expect.stringContaining("XDG_STATE_HOME"),
    });
    expect(existsSync(at("f"))).toBe(false);
  });

  test("a name that the file system refuses is an error", async () => {
    await expect(change("x".repeat(300), append)).rejects.toMatchObject({
      code: expect.stringMatching(/refused_target|write_failed/),
      file: "x".repeat(300),
    });
  });
});
