/** Notes on what is going on in a project, kept in `.plimsoll/notes.yaml` and shown to every AI tool of the project. */
import { join } from "node:path";
import { ContextError } from "../errors.ts";
import { fromByteString, toByteString } from "../text/index.ts";
import { changeFile } from "./change-file.ts";
import { readTextFile } from "./read-text.ts";

/** Longer notes would push out the packs. */
export const MAX_NOTE_BYTES = 500;

export function notesPath(root: string): string {
  return join(root, ".plimsoll", "notes.yaml");
}

/** The notes of a project, oldest first; none when there is no file. */
export async function readNotes(root: string): Promise<string[]> {
  const read = await readTextFile(notesPath(root));
  return "text" in read ? parseNotes(read.text, notesPath(root)) : [];
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

async function changeNotes(root: string, change: (notes: readonly string[]) => string[]): Promise<string[]> {
  const { parse, stringify } = await import("yaml");
  const path = notesPath(root);
  let notes: string[] = [];
  await changeFile(path, {
    root,
    change: (current) => {
      notes = change(current === undefined ? [] : checkNotes(parse(fromByteString(current)), path));
      return notes.length === 0 && current === undefined ? undefined : toByteString(stringify({ notes }));
    },
  });
  return notes;
}

async function parseNotes(text: string, path: string): Promise<string[]> {
  const { parse } = await import("yaml");
  try {
    return checkNotes(parse(text), path);
  } catch (cause) {
    if (cause instanceof ContextError) throw cause;
    throw new ContextError("invalid_content", `malformed YAML: ${(cause as Error).message.split("\n")[0]}`, {
      file: path,
      cause,
    });
  }
}

function checkNotes(value: unknown, path: string): string[] {
  const notes = value === null ? [] : ((value as { notes?: unknown }).notes ?? []);
  if (Array.isArray(notes) && notes.every((note) => typeof note === "string")) return notes;
  throw new ContextError("invalid_content", '"notes" must be a list of texts', { file: path, line: 1 });
}
