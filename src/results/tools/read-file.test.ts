import { execFileSync } from "node:child_process";
import { appendFileSync, chmodSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createReadFile } from "./read-file.ts";
import { createTree, type ReadResult, readResult } from "./temporary-tree.contract.ts";
import { testTool } from "./tool.contract.ts";

testTool("read_file", { create: createReadFile, args: { path: "src/store.ts" } });

const call = { signal: new AbortController().signal };

async function read(root: string, args: Record<string, unknown>): Promise<ReadResult> {
  return readResult(await createReadFile({ root, env: process.env }).run(args, call));
}

test("a whole file comes with its size, its number of lines and its encoding", async () => {
  const root = createTree({ "a.txt": "eins\r\nzwei\ndrei" });
  expect(await read(root, { path: "a.txt" })).toMatchObject({
    fields: { path: "a.txt", size: 15, total_lines: 3, encoding: "utf-8", first_line: 1 },
    itemsName: "lines",
    items: ["eins", "zwei", "drei"],
    total: 3,
    more: false,
    warnings: [],
  });
});

test("a range can have one end, both or an offset, and is empty past the end", async () => {
  const root = createTree({ "a.txt": "1\n2\n3\n4\n5\n" });
  const cases: [Record<string, unknown>, string[], number][] = [
    [{ start_line: 4 }, ["4", "5"], 2],
    [{ end_line: 2 }, ["1", "2"], 2],
    [{ start_line: 2, end_line: 4 }, ["2", "3", "4"], 3],
    [{ start_line: 2, end_line: 4, offset: 2 }, ["4"], 3],
    [{ start_line: 3, end_line: 99 }, ["3", "4", "5"], 3],
    [{ offset: 9 }, [], 5],
  ];
  for (const [args, items, total] of cases) {
    expect(await read(root, { path: "a.txt", ...args })).toMatchObject({ items, total, warnings: [] });
  }
  expect(await read(root, { path: "a.txt", start_line: 2, offset: 2 })).toMatchObject({
    fields: { first_line: 4 },
  });
  expect(await read(root, { path: "a.txt", start_line: 7 })).toMatchObject({
    items: [],
    total: 0,
    warnings: ["The file ends with line 5."],
  });
  const tool = createReadFile({ root, env: process.env });
  expect(await tool.run({ path: "a.txt", start_line: 3, end_line: 2 }, call)).toMatchObject({
    code: "invalid_argument",
    message: "end_line 2 is before start_line 3.",
  });
});

test("a maximum size ends the page, in a range too, and the rest follows at the next offset", async () => {
  const root = createTree({ "a.txt": "1234\n1234\n1234\n1234\n" });
  const first = await read(root, { path: "a.txt", start_line: 2, max_size: 10 });
  expect(first).toMatchObject({ items: ["1234", "1234"], total: 3, more: true });
  expect(await read(root, { path: "a.txt", start_line: 2, max_size: 10, offset: 2 })).toMatchObject({
    items: ["1234"],
    more: false,
  });
});

test("long lines are cut with a note, and complete if asked for", async () => {
  const root = createTree({ "a.min.js": `short\n${"x".repeat(5_000)}\n` });
  expect(await read(root, { path: "a.min.js" })).toMatchObject({
    items: ["short", `${"x".repeat(2_000)}… [3000 more characters]`],
    warnings: [
      "1 line is longer than 2000 characters and cut: raise max_line_length, or continue with start_column 2001.",
    ],
  });
  const { items } = await read(root, { path: "a.min.js", max_line_length: 5_000 });
  expect(items[1]).toBe("x".repeat(5_000));
});

test("a line of any length is read part by part, and no part is longer than allowed", async () => {
  const line = `${"x".repeat(9)}😀${"yé".repeat(700)}😀`;
  const root = createTree({ "a.json": `${line}\nshort\n${line}` });
  for (const max_line_length of [10, 11, 500]) {
    let joined = "";
    for (let more = true; more; ) {
      const args = { path: "a.json", max_line_length, start_column: joined.length + 1 };
      const { items, warnings } = await read(root, args);
      expect(items).toHaveLength(3);
      expect(items[2]).toBe(items[0]);
      joined += String(items[0]).replace(/… \[\d+ more characters\]$/, "");
      more = warnings.length > 0;
    }
    expect(joined).toBe(line);
  }
  const split = await read(root, { path: "a.json", start_column: 11, max_line_length: 2 });
  expect(split.items[0]).toMatch(/^😀…/u);
  const tool = createReadFile({ root, env: process.env });
  expect(await tool.run({ path: "a.json", max_line_length: 100_001 }, call)).toMatchObject({
    code: "invalid_argument",
    message: "max_line_length is 100001, but must be a whole number from 1 to 100000.",
  });
});

test.each([
  ["utf-8", Buffer.from("größe\n")],
  ["utf-8", Buffer.from("\uFEFFgröße\n")],
  ["utf-16le", Buffer.from("\uFEFFgröße\n", "utf16le")],
  ["utf-16be", Buffer.from("\uFEFFgröße\n", "utf16le").swap16()],
  ["latin1", Buffer.from("größe\n", "latin1")],
])("detects %s from the bytes", async (encoding, bytes) => {
  const result = await read(createTree({ "a.txt": bytes }), { path: "a.txt" });
  expect(result).toMatchObject({ fields: { encoding }, items: ["größe"], total: 1 });
});

test("UTF-8 whose sample ends inside a character is still UTF-8", async () => {
  for (const length of [65_534, 65_535, 65_536]) {
    const result = await read(createTree({ "a.txt": `${"x".repeat(length)}é\n` }), { path: "a.txt" });
    expect(result.fields).toMatchObject({ encoding: "utf-8" });
  }
});

test("a named encoding is used, and an unknown one is refused", async () => {
  const root = createTree({
    "a.txt": Buffer.from([0x83, 0x65, 0x83, 0x58, 0x83, 0x67]),
    "b.bin": Buffer.from("a\0b"),
  });
  expect((await read(root, { path: "a.txt", encoding: "shift_jis" })).items).toEqual(["テスト"]);
  expect((await read(root, { path: "b.bin", encoding: "utf-8" })).items).toEqual(["a\0b"]);
  const tool = createReadFile({ root, env: process.env });
  expect(await tool.run({ path: "a.txt", encoding: "klingon" }, call)).toMatchObject({
    code: "invalid_argument",
  });
});

test("a binary file returns facts and no text", async () => {
  const root = createTree({ "a.png": Buffer.from([0x89, 0x50, 0, 0, 1]) });
  expect(await read(root, { path: "a.png" })).toMatchObject({
    fields: { path: "a.png", size: 5, binary: true },
    items: [],
    total: 0,
    warnings: ["This is a binary file of 5B. If it is text, name its encoding."],
  });
});

test("an empty file has no lines", async () => {
  expect(await read(createTree({ "a.txt": "" }), { path: "a.txt" })).toMatchObject({ items: [], total: 0 });
});

test("a path that cannot be read as a file is a failure that says why", async () => {
  const root = createTree({ "dir/a": "", locked: "", "-flag": "ok\n" });
  chmodSync(join(root, "locked"), 0);
  execFileSync("mkfifo", [join(root, "pipe")]);
  const tool = createReadFile({ root, env: process.env });
  const cases: [string, string][] = [
    ["dir", '"dir" is a directory.'],
    ["missing", '"missing" does not exist.'],
    ["pipe", '"pipe" is a pipe, socket or device.'],
  ];
  if (process.getuid?.() !== 0) cases.push(["locked", '"locked" cannot be read: permission denied.']);
  for (const [path, message] of cases) expect(await tool.run({ path }, call)).toMatchObject({ message });
  expect((await read(root, { path: "-flag" })).items).toEqual(["ok"]);
});

test("a file that changed has another version", async () => {
  const root = createTree({ "a.txt": "1\n" });
  const before = (await read(root, { path: "a.txt" })).version;
  expect((await read(root, { path: "a.txt" })).version).toBe(before);
  appendFileSync(join(root, "a.txt"), "2\n");
  expect((await read(root, { path: "a.txt" })).version).not.toBe(before);
});
