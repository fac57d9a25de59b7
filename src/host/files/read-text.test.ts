import { mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, expect, test } from "vitest";
import { decodeText, maxTextBytes, readTextFile, readTextStream, systemReason } from "./read-text.ts";

const scratch = mkdtempSync(join(tmpdir(), "plimsoll-read-"));
afterAll(() => rmSync(scratch, { recursive: true }));

function write(name: string, content: string | Buffer): string {
  const path = join(scratch, name);
  writeFileSync(path, content);
  return path;
}

test("returns text with its length in bytes", async () => {
  expect(await readTextFile(write("a.md", "größe 🚢\n"))).toEqual({ text: "größe 🚢\n", bytes: 13 });
  expect(await readTextFile(write("empty", ""))).toEqual({ text: "", bytes: 0 });
});

test("keeps a byte order mark", async () => {
  expect(await readTextFile(write("bom.md", "\uFEFFa"))).toEqual({ text: "\uFEFFa", bytes: 4 });
});

test("a NUL byte makes a binary file", async () => {
  expect(await readTextFile(write("a.bin", Buffer.from([1, 0, 2])))).toEqual({
    reason: "binary file",
    kind: "binary",
  });
});

test("reports the line of the first invalid byte", () => {
  expect(decodeText(Buffer.from("one\ntwo\n\xfcber\n", "latin1"))).toEqual({
    reason: "invalid UTF-8 in line 3: convert it first",
    kind: "failed",
  });
});

test("a real replacement character before the wrong byte does not hide it", () => {
  const bytes = Buffer.concat([Buffer.from("\uFFFD ok \uFFFD\n\n"), Buffer.from([0xc3])]);
  expect(decodeText(bytes)).toMatchObject({ reason: expect.stringContaining("line 3") });
  expect(decodeText(Buffer.from([0xff]))).toMatchObject({ reason: expect.stringContaining("line 1") });
  expect(decodeText(Buffer.from("\uFFFD"))).toEqual({ text: "\uFFFD", bytes: 3 });
});

test("recognises UTF-16 in both byte orders", () => {
  for (const bytes of [Buffer.from("\uFEFFhi", "utf16le"), Buffer.from("\uFEFFhi", "utf16le").swap16()]) {
    expect(decodeText(bytes)).toMatchObject({ reason: expect.stringContaining("UTF-16"), kind: "failed" });
  }
});

test("bytes that are not text are binary even if their first NUL comes late", () => {
  const bytes = Buffer.concat([Buffer.alloc(9000, 0xff), Buffer.from([0])]);
  bytes[1] = 0x80;
  expect(decodeText(bytes)).toMatchObject({ kind: "binary" });
});

test("a missing file, a directory and a circle of links each have their own reason", async () => {
  symlinkSync("loop", join(scratch, "loop"));
  expect(await readTextFile(join(scratch, "none"))).toEqual({
    reason: "no such file or directory",
    kind: "failed",
  });
  expect(await readTextFile(scratch)).toEqual({ reason: "is a directory", kind: "failed" });
  expect(await readTextFile(join(scratch, "loop"))).toMatchObject({
    reason: expect.stringContaining("circle"),
  });
  expect(await readTextFile(join(write("plain", ""), "x"))).toMatchObject({
    reason: expect.stringContaining("path"),
  });
});

test("refuses a text above the limit by its size, and still recognises a binary file of that size", async () => {
  const large = write("large.log", "x".repeat(8192));
  truncateSync(large, maxTextBytes + 1);
  expect(await readTextFile(large)).toEqual({
    reason: "101 MB, files above 100 MB are not read: split it",
    kind: "failed",
  });
  const zeros = write("zeros", "");
  truncateSync(zeros, maxTextBytes + 1);
  expect(await readTextFile(zeros)).toMatchObject({ kind: "binary" });
});

test("joins a stream across a cut character, and stops above the limit", async () => {
  const [first, second] = [Buffer.from([0xc3]), Buffer.from([0xa4])];
  expect(await readTextStream(Readable.from([first, second]))).toEqual({ text: "ä", bytes: 2 });
  const megabyte = Buffer.alloc(1024 * 1024, "a");
  let sent = 0;
  const endless = (async function* () {
    for (;;) {
      sent++;
      yield megabyte;
    }
  })();
  expect(await readTextStream(endless)).toMatchObject({
    reason: expect.stringContaining("more than 100 MB"),
  });
  expect(sent).toBe(101);
});

test("rethrows an error that is not about files", () => {
  expect(() => systemReason(new TypeError("bug"))).toThrow("bug");
  expect(systemReason(Object.assign(new Error("x"), { code: "EACCES" }))).toBe("no permission to read it");
  expect(systemReason(Object.assign(new Error("x"), { code: "EWEIRD" }))).toBe("cannot be read (EWEIRD)");
});
