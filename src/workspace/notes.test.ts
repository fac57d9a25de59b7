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

it("has no notes without a file, and makes one for the first note", async () => {
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

it.each([
  ["a plain list", "- mine\n"],
  ["texts that are none", "notes:\n  - { a: 1 }\n"],
  ["malformed YAML", "notes: [\n"],
])("refuses %s and leaves it alone", async (_, text) => {
  await writeFile(file(), text);
  await expect(addNote(root, "x")).rejects.toMatchObject({ code: "invalid_content", file: file() });
  await expect(readNotes(root)).rejects.toMatchObject({ code: "invalid_content" });
  expect(await readFile(file(), "utf8")).toBe(text);
});

it("refuses an empty note and one that would not be shown whole", async () => {
  await expect(addNote(root, "  ")).rejects.toThrow("empty");
  await expect(addNote(root, "é".repeat(251))).rejects.toThrow("502 bytes, at most 500");
});
