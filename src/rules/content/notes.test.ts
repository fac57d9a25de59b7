import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { addNote, clearNotes, readNotes } from "./notes.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "plimsoll-notes-"));
  await mkdir(join(root, ".plimsoll"));
});
afterEach(() => rm(root, { recursive: true }));

const file = () => join(root, ".plimsoll", "notes.yaml");

it("has no notes without a file, and creates the file for the first note", async () => {
  expect(await readNotes(root)).toEqual([]);
  expect(await clearNotes(root)).toEqual([]);
  expect(await addNote(root, " release\n freeze ")).toEqual(["release freeze"]);
  expect(await readNotes(root)).toEqual(["release freeze"]);
});

it("keeps the comments and other keys of the file", async () => {
  await writeFile(file(), "# ours\nnotes:\n  - one\nowner: team # who\n");
  await addNote(root, "two");
  const text = await readFile(file(), "utf8");
  expect(text).toContain("# ours");
  expect(text).toContain("owner: team # who");
  expect(await readNotes(root)).toEqual(["one", "two"]);
});

it("names the line of a key that is nearly the right one", async () => {
  await writeFile(file(), "# ours\nnote:\n  - one\n");
  const problem = { code: "invalid_content", line: 2, message: 'unknown key "note". Did you mean "notes"?' };
  await expect(readNotes(root)).rejects.toMatchObject(problem);
  await expect(addNote(root, "two")).rejects.toMatchObject(problem);
});

it.each([
  ["a plain list", "- mine\n"],
  ["texts that are none", "notes:\n  - { a: 1 }\n"],
  ["malformed YAML", "notes: [\n"],
])("refuses %s and does not change it", async (_, text) => {
  await writeFile(file(), text);
  await expect(addNote(root, "x")).rejects.toMatchObject({ code: "invalid_content", file: file() });
  await expect(readNotes(root)).rejects.toMatchObject({ code: "invalid_content" });
  expect(await readFile(file(), "utf8")).toBe(text);
});

it("refuses an empty note and a note that would not be shown completely", async () => {
  await expect(addNote(root, "  ")).rejects.toThrow("empty");
  await expect(addNote(root, "é".repeat(251))).rejects.toThrow("502 bytes, but at most 500");
});

it("keeps the comments within the list and the length of its lines", async () => {
  const long = `${"word ".repeat(60)}end`;
  const text = `notes:\n  # why one\n  - one # inline\n  - ${long}\n`;
  await writeFile(file(), text);
  await addNote(root, `x ${long}`);
  expect(await readFile(file(), "utf8")).toBe(`${text}  - x ${long}\n`);
  await clearNotes(root);
  expect(await addNote(root, "again")).toEqual(["again"]);
  expect(await readFile(file(), "utf8")).toBe("notes:\n  # why one\n  - again\n");
});

it.each([
  ["an empty list", "# top\nnotes: # why\nowner: a\n"],
  ["a comment alone", "# top\n# why\n"],
  ["an empty list with a comment below", "# top\nnotes:\n  # why\n"],
])("keeps the comments around %s", async (_, text) => {
  await writeFile(file(), text);
  expect(await clearNotes(root)).toEqual([]);
  expect(await readFile(file(), "utf8")).toBe(text);
  expect(await addNote(root, "x")).toEqual(["x"]);
  const changed = await readFile(file(), "utf8");
  expect(changed).toContain("# top");
  expect(changed).toContain("# why");
});

it.each(["notes: &n\n  - a\nb: *n\n", "notes: &n\nb: *n\n"])(
  "changes a list that another key names: %j",
  async (text) => {
    await writeFile(file(), text);
    expect((await addNote(root, "x")).at(-1)).toBe("x");
    expect(await readFile(file(), "utf8")).toContain("b: *n");
    expect(await clearNotes(root)).toEqual([]);
  },
);

const bomb = `a: &a [x]\n${[..."bcdefghi"].map((key, index) => `${key}: &${key} [${`*${"abcdefgh"[index]},`.repeat(10)}]`).join("\n")}\nnotes: *i\n`;

it.each([
  ["an alias that leads nowhere", "notes: [a, *x]\n"],
  ["an alias that grows without end", bomb],
  ["a list from elsewhere", "x: &x [a]\nnotes: *x\n"],
  ["a merged list", "x: &x { notes: [a] }\n<<: *x\n"],
])("refuses %s with a message", async (_, text) => {
  await writeFile(file(), text);
  await expect(addNote(root, "x")).rejects.toMatchObject({ code: "invalid_content", file: file() });
  expect(await readFile(file(), "utf8")).toBe(text);
});

it("does not clear a note that another key uses", async () => {
  await writeFile(file(), "notes: [&x a]\nb: *x\n");
  await expect(clearNotes(root)).rejects.toMatchObject({ code: "invalid_content" });
});

it("does not wait for the writer of a pipe", { timeout: 5_000 }, async () => {
  execFileSync("mkfifo", [file()]);
  await expect(readNotes(root)).rejects.toMatchObject({ code: "unreadable_input", file: file() });
});
