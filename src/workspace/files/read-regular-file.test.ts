import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readRegularFile, readRegularText } from "./read-text.ts";

const scratch = mkdtempSync(join(tmpdir(), "plimsoll-regular-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const at = (name: string) => join(scratch, name);

test("reads a regular file, also through a link", async () => {
  writeFileSync(at("a"), Buffer.from([0x61, 0xff]));
  symlinkSync("a", at("link"));
  expect(await readRegularFile(at("link"))).toEqual(Buffer.from([0x61, 0xff]));
  expect(await readRegularText(at("a"))).toMatchObject({ reason: expect.stringContaining("invalid UTF-8") });
  writeFileSync(at("b"), "größe");
  expect(await readRegularText(at("b"))).toEqual({ text: "größe", bytes: 7 });
});

test("does not wait for a pipe, by its name or through a link", { timeout: 5_000 }, async () => {
  execFileSync("mkfifo", [at("pipe")]);
  symlinkSync("pipe", at("pipe-link"));
  for (const name of ["pipe", "pipe-link"]) {
    expect(await readRegularFile(at(name))).toEqual({
      reason: "is a pipe, socket or device, not a file",
      kind: "special",
    });
  }
  expect(await readRegularFile("/dev/zero")).toMatchObject({ kind: "special" });
});

test("reports a missing file, a directory and a file that is too large", async () => {
  expect(await readRegularFile(at("none"))).toMatchObject({ reason: "no such file or directory" });
  expect(await readRegularFile(scratch)).toMatchObject({ reason: "is a directory" });
  writeFileSync(at("large"), "1234");
  expect(await readRegularFile(at("large"), 3)).toEqual({
    reason: "has 4 bytes, more than 3 are not read",
    kind: "failed",
  });
  expect(await readRegularFile(at("large"), 4)).toHaveLength(4);
});
