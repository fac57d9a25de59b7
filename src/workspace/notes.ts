/** Notes on what is going on in a project, kept in `.plimsoll/notes.yaml` and shown to every AI tool of the project. */
import { join } from "node:path";
import type { Document, Scalar, YAMLSeq } from "yaml";
import { ContextError } from "../errors.ts";
import { fromByteString, toByteString } from "../text/index.ts";
import { changeFile } from "./files/change-file.ts";
import { readRegularText } from "./files/read-regular-file.ts";
import { refuseOutside } from "./files/resolve-target.ts";
import { exists } from "./files/upward.ts";

/** The notes of a project, oldest first; none when there is no file. */
export async function readNotes(root: string): Promise<string[]> {
  const path = notesPath(root);
  if (!(await exists(path))) return [];
  await refuseOutside(path, root);
  const read = await readRegularText(path);
  if (!("text" in read)) throw new ContextError("unreadable_input", read.reason, { file: path });
  return parseNotes(await loadEditor(), read.text, path).notes;
}

/** Adds a note at the end. White space runs become blanks, since a note is one line of the block. */
export async function addNote(root: string, note: string): Promise<string[]> {
  const line = note.replace(/\s+/g, " ").trim();
  if (line === "") throw new ContextError("usage", "the note is empty");
  const bytes = Buffer.byteLength(line);
  // Few commands that read the workspace need packs.
  const { maxNoteBytes } = await import("../packs/index.ts");
  if (bytes > maxNoteBytes) {
    throw new ContextError("usage", `the note has ${bytes} bytes, at most ${maxNoteBytes} are shown`, {
      hint: "Shorten it, or put it into a pack.",
    });
  }
  return changeNotes(root, (list) => {
    // What `clear` leaves is `[]`, and a list within brackets would be one long line.
    if (list.items.length === 0) list.flow = false;
    list.add(line);
  });
}

export async function clearNotes(root: string): Promise<string[]> {
  return changeNotes(root, (list) => {
    list.items = [];
  });
}

/** Comments of the file stay: its list is changed, not written anew. */
async function changeNotes(root: string, change: (list: YAMLSeq) => void): Promise<string[]> {
  const path = notesPath(root);
  const yaml = await loadEditor();
  let notes: string[] = [];
  await changeFile(path, {
    root,
    change: (current) => {
      const parsed = parseNotes(yaml, current === undefined ? "" : fromByteString(current), path);
      const list = listOf(yaml, parsed, path);
      const before = list.items.length;
      change(list);
      notes = parsed.notes.slice(0, list.items.length);
      if (list.items.length === before) return current;
      const text = printed(parsed.document, path);
      notes = parseNotes(yaml, text, path).notes;
      return toByteString(text);
    },
  });
  return notes;
}

type Yaml = Awaited<ReturnType<typeof loadEditor>>;

/** Our reader of YAML with the library's own nodes: the file is edited, not only read. */
async function loadEditor(): Promise<typeof import("yaml") & typeof import("./yaml/yaml-document.ts")> {
  return { ...(await import("yaml")), ...(await import("./yaml/yaml-document.ts")) };
}

interface ParsedNotes {
  readonly document: Document;
  readonly notes: string[];
}

/** Anything but a list under `notes` was written for something else and stays as it is. */
function parseNotes(yaml: Yaml, text: string, path: string): ParsedNotes {
  const { document, input, problems } = yaml.readYaml(text);
  const [problem] = problems;
  if (problem !== undefined || document === undefined) {
    throw refused(problem?.message ?? "malformed YAML", path, problem?.line);
  }
  const isMapping = typeof input === "object" && !Array.isArray(input);
  const notes = isMapping ? ((input as { notes?: unknown } | null)?.notes ?? []) : undefined;
  if (Array.isArray(notes) && notes.every((note) => typeof note === "string")) return { document, notes };
  throw refused('it must hold a list of texts under "notes"', path);
}

/** The list as it stands in the file. A new one takes over the comments and the anchor of the empty value that it replaces. */
function listOf(yaml: Yaml, { document, notes }: ParsedNotes, path: string): YAMLSeq {
  if (document.contents === null || yaml.isScalar(document.contents)) {
    const { commentBefore } = document.contents ?? {};
    document.contents = document.createNode({});
    document.contents.commentBefore = commentBefore;
  }
  const value = document.get("notes", true) as unknown;
  if (yaml.isSeq(value)) return value;
  if (notes.length > 0) throw refused('"notes" is a list from elsewhere in the file: write it out', path);
  const list = new yaml.YAMLSeq();
  if (yaml.isScalar(value)) {
    const { comment, commentBefore, anchor } = value as Scalar;
    const comments = [commentBefore, comment].filter((text) => typeof text === "string");
    if (comments.length > 0) list.commentBefore = comments.join("\n");
    list.anchor = anchor;
  }
  document.set("notes", list);
  return list;
}

/** Lines stay as long as they are. */
function printed(document: Document, path: string): string {
  try {
    return document.toString({ lineWidth: 0 });
  } catch {
    // The library throws for an alias whose anchor went with a note.
    throw refused("another part of the file uses a note by its anchor: write it out there", path);
  }
}

function refused(message: string, file: string, line = 1): ContextError {
  return new ContextError("invalid_content", message, { file, line });
}

function notesPath(root: string): string {
  return join(root, ".plimsoll", "notes.yaml");
}
