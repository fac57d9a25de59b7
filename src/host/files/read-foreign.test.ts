import { execFileSync } from "node:child_process";
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { listForeign, readForeign, readForeignBytes, readForeignText, refuseOpened } from "./read-foreign.ts";

const scratch = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-foreign-")));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const at = (name: string) => join(scratch, name);

test("reads a regular file, also through a link", () => {
  writeFileSync(at("a"), Buffer.from([0x61, 0xff]));
  symlinkSync("a", at("link"));
  expect(readForeign(at("link"))).toEqual(Buffer.from([0x61, 0xff]));
  expect(readForeignText(at("a"))).toMatchObject({ reason: expect.stringContaining("invalid UTF-8") });
  writeFileSync(at("b"), "größe");
  expect(readForeignText(at("b"))).toEqual({ text: "größe", bytes: 7 });
});

test("does not wait for a pipe, by its name or through a link", { timeout: 5_000 }, () => {
  execFileSync("mkfifo", [at("pipe")]);
  symlinkSync("pipe", at("pipe-link"));
  for (const name of ["pipe", "pipe-link"]) {
    expect(readForeign(at(name))).toEqual({
      reason: "is a pipe, socket or device, not a file",
      kind: "special",
    });
  }
  expect(readForeign("/dev/zero")).toMatchObject({ kind: "special" });
});

test("reports a missing file, a directory and a file that is too large", () => {
  expect(readForeign(at("none"))).toMatchObject({ reason: "no such file or directory" });
  expect(readForeign(scratch)).toMatchObject({ reason: "is a directory" });
  writeFileSync(at("large"), "1234");
  expect(readForeign(at("large"), { maxBytes: 3 })).toEqual({
    reason: "has 4 bytes, more than 3 are not read",
    kind: "failed",
  });
  expect(readForeign(at("large"), { maxBytes: 4 })).toHaveLength(4);
});

describe("a file that must lie in what was named", () => {
  const root = at("root");
  mkdirSync(join(root, "sub"), { recursive: true });
  mkdirSync(at("outside"));
  writeFileSync(at("outside/secret"), "secret");
  writeFileSync(join(root, "sub/own"), "own");
  symlinkSync("../outside/secret", join(root, "link-out"));
  symlinkSync("../outside", join(root, "folder-out"));
  symlinkSync("sub/own", join(root, "link-in"));
  symlinkSync("loop", join(root, "loop"));

  test("is read, also through a link inside", () => {
    for (const name of ["sub/own", "link-in"]) {
      expect(readForeignText(join(root, name), { within: root })).toEqual({ text: "own", bytes: 3 });
    }
    symlinkSync(root, at("root-link"));
    expect(readForeignText(at("root-link/sub/own"), { within: at("root-link") })).toMatchObject({ text: "own" });
  });

  test("is not read elsewhere, and the reason says where it leads", () => {
    for (const name of ["link-out", "folder-out/secret", "../outside/secret"]) {
      expect(readForeign(join(root, name), { within: root })).toEqual({
        kind: "special",
        reason: `leads through a symbolic link out of ${root}, to ${at("outside/secret")}. Copy the file instead`,
      });
    }
    expect(readForeign(join(root, "loop"), { within: root })).toMatchObject({ kind: "failed" });
  });

  test("may have to be a plain file", () => {
    expect(readForeign(join(root, "link-in"), { within: root, refuseLink: true })).toMatchObject({
      reason: "is a symbolic link, not a file",
    });
    expect(readForeignBytes(join(root, "sub/own"), { within: root, refuseLink: true })).toBe("own");
  });

  test("is looked at again after it was opened", () => {
    const descriptor = openSync(at("outside/secret"), "r");
    try {
      // By now the path leads to a file inside.
      expect(refuseOpened(descriptor, { path: join(root, "sub/own"), within: root })).toBeDefined();
      expect(refuseOpened(descriptor, { path: at("outside/secret"), within: at("outside") })).toBeUndefined();
    } finally {
      closeSync(descriptor);
    }
  });

  test("can be listed with its folder, but not elsewhere", () => {
    const entries = listForeign(join(root, "sub"), { within: root });
    expect(Array.isArray(entries) && entries.map(({ name }) => name)).toEqual(["own"]);
    expect(listForeign(join(root, "folder-out"), { within: root })).toMatchObject({ kind: "special" });
    expect(listForeign(join(root, "sub/own"), { within: root })).toMatchObject({ reason: "is not a directory" });
    expect(listForeign(join(root, "none"))).toMatchObject({ reason: "no such file or directory" });
  });

  test("keeps its bytes if its name is not UTF-8", () => {
    const path = Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x61, 0xff])]);
    writeFileSync(path, "odd");
    expect(readForeignText(path, { within: root })).toMatchObject({ text: "odd" });
  });
});

test("reads files of the system, whose size is 0, and a large file in pieces", () => {
  if (process.platform === "linux") expect(readForeign("/proc/self/status")).toBeInstanceOf(Buffer);
  const bytes = Buffer.alloc(3_000_001, "ab");
  writeFileSync(at("pieces"), bytes);
  expect(bytes.equals(readForeign(at("pieces")) as Buffer)).toBe(true);
});

test("gives up on a file that takes too long", () => {
  writeFileSync(at("slow"), Buffer.alloc(3_000_001));
  expect(readForeign(at("slow"), { maxMs: -1 })).toEqual({ reason: "is not read within -0.001 s", kind: "failed" });
});

test("does not allocate for a file that is too large, and tells text from other bytes", () => {
  writeFileSync(at("sparse"), "text");
  truncateSync(at("sparse"), 10_000_000_000);
  expect(readForeign(at("sparse"))).toMatchObject({ reason: expect.stringContaining("has 10000000000 bytes") });
  const limit = { maxBytes: 3, reason: "split it" };
  expect(readForeign(at("sparse"), limit)).toEqual({ reason: "binary file", kind: "binary" });
  expect(readForeign(at("large"), limit)).toEqual({ reason: "1 MB, split it", kind: "failed" });
});
