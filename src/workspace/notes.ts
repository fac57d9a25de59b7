/** Notes on what is going on in a project, kept in `.plimsoll/notes.yaml` and shown to every AI tool of the project. */
import { join } from "node:path";
import type { Document } from "yaml";
import { ContextError } from "../errors.ts";
import { fromByteString, toByteString } from "../text/index.ts";
import { changeFile } from "./files/change-file.ts";
import { readTextFile } from "./files/read-text.ts";
import { exists } from "./files/upward.ts";

/** Longer notes would push out the packs. */
const MAX_NOTE_BYTES = 500;

/** The notes of a project, oldest first; none when there is no file. */
export async function readNotes(root: string): Promise<string[]> {
  const path = notesPath(root);
  if (!(await exists(path))) return [];
  const read = await readTextFile(path);
  if (!("text" in read)) throw new ContextError("unreadable_input", read.reason, { file: path });
  return notesOf(await parseNotes(read.text, path), path);
}

/** Adds a note at the end. White space runs become blanks, since a note is one line of the block. */
export async function addNote(root: string, note: string): Promise<string[]> {
  const line = note.replace(/\s+/g, " ").trim();
  if (line === "") throw new ContextError("usage", "the note is empty");
  const bytes = Buffer.byteLength(line);
  if (bytes > MAX_NOTE_BYTES) {
    throw new ContextError("usage", `the note has ${bytes} bytes, at most ${MAX_NOTE_BYTES} are shown`, {
      hint: "Shorten it, or put it into a pack.",
    });
  }
  return changeNotes(root, (notes) => [...notes, line]);
}

export async function clearNotes(root: string): Promise<string[]> {
  return changeNotes(root, () => []);
}

/** Comments of the file stay: the document is changed, not written anew. */
async function changeNotes(root: string, change: (notes: readonly string[]) => string[]): Promise<string[]> {
  const path = notesPath(root);
  const yaml = await import("yaml");
  let notes: string[] = [];
  await changeFile(path, {
    root,
    change: (current) => {
      const document = parseDocument(yaml, current === undefined ? "" : fromByteString(current), path);
      notes = change(notesOf(document, path));
      if (notes.length === 0 && current === undefined) return undefined;
      if (document.contents === null) document.contents = document.createNode({});
      document.set("notes", document.createNode(notes));
      return toByteString(document.toString());
    },
  });
  return notes;
}

async function parseNotes(text: string, path: string): Promise<Document> {
  return parseDocument(await import("yaml"), text, path);
}

function parseDocument(yaml: typeof import("yaml"), text: string, path: string): Document {
  const lines = new yaml.LineCounter();
  const document = yaml.parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: "error" });
  const [error] = document.errors;
  if (error === undefined) return document;
  const { line } = lines.linePos(error.pos[0]);
  throw new ContextError("invalid_content", `malformed YAML: ${error.message.split("\n")[0]}`, {
    file: path,
    line,
  });
}

/** Anything but a list under `notes` was written for something else and stays as it is. */
function notesOf(document: Document, path: string): string[] {
  const value: unknown = document.toJS();
  if (value === null) return [];
  const fields =
    typeof value === "object" && !Array.isArray(value) ? (value as { notes?: unknown }) : undefined;
  const notes = fields === undefined ? undefined : (fields.notes ?? []);
  if (Array.isArray(notes) && notes.every((note) => typeof note === "string")) return notes;
  throw new ContextError("invalid_content", 'it must hold a list of texts under "notes"', {
    file: path,
    line: 1,
  });
}

function notesPath(root: string): string {
  return join(root, ".plimsoll", "notes.yaml");
}
