/** Notes on the current work in a project, kept in `.plimsoll/notes.yaml` and shown to every AI tool of the project. */
import { join } from "node:path";
import type { Document, Scalar, YAMLSeq } from "yaml";
import { ContextError } from "../../core/errors.ts";
import { closest, fromByteString, oneLine, toByteString } from "../../core/text/index.ts";
import { attemptChange, exists, loadYaml, readForeignText } from "../../host/index.ts";

/** Returns the notes of a project, oldest first. Returns an empty list without a file. */
export async function readNotes(root: string): Promise<string[]> {
  const path = notesPath(root);
  if (!(await exists(path))) return [];
  const read = readForeignText(path, { within: root });
  if (!("text" in read)) throw new ContextError("unreadable_input", read.reason, { file: path });
  return parseNotes(await loadYaml(), read.text, path).notes;
}

/** Adds a note at the end. Runs of white space become one space, since a note is one line of the block. */
export async function addNote(root: string, note: string): Promise<string[]> {
  const line = oneLine(note);
  if (line === "") throw new ContextError("usage", "the note is empty");
  const bytes = Buffer.byteLength(line);
  // Few commands that read the workspace need packs.
  const { maxNoteBytes } = await import("../packs/index.ts");
  if (bytes > maxNoteBytes) {
    throw new ContextError("usage", `the note has ${bytes} bytes, but at most ${maxNoteBytes} are shown`, {
      hint: "Shorten it, or put it into a pack.",
    });
  }
  return changeNotes(root, (list) => {
    // `clear` leaves `[]`, and a list in brackets would be one long line.
    if (list.items.length === 0) list.flow = false;
    list.add(line);
  });
}

export async function clearNotes(root: string): Promise<string[]> {
  return changeNotes(root, (list) => {
    list.items = [];
  });
}

/** Keeps the comments of the file: only its list is changed. */
async function changeNotes(root: string, change: (list: YAMLSeq) => void): Promise<string[]> {
  const path = notesPath(root);
  const yaml = await loadYaml();
  const { facts: notes = [], problem } = await attemptChange(path, {
    root,
    plan: (current) => {
      const parsed = parseNotes(yaml, current === undefined ? "" : fromByteString(current), path);
      const list = findList(yaml, parsed, path);
      const before = list.items.length;
      change(list);
      if (list.items.length === before) return { after: current, facts: parsed.notes };
      let text: string;
      try {
        // Does not wrap lines.
        text = parsed.document.toString({ lineWidth: 0 });
      } catch {
        // The library throws on an alias whose anchor was removed with a note.
        throw refused("another part of the file uses a note by its anchor. Write the text there", path);
      }
      return { after: toByteString(text), facts: parseNotes(yaml, text, path).notes };
    },
  });
  if (problem !== undefined) throw problem;
  return notes;
}

type Yaml = Awaited<ReturnType<typeof loadYaml>>;

/** If `notes` is not a list, the file has another purpose and is not changed. */
function parseNotes(yaml: Yaml, text: string, path: string): { readonly document: Document; readonly notes: string[] } {
  const { document, input, problems, lineOf } = yaml.readYaml(text);
  const [problem] = problems;
  if (problem !== undefined || document === undefined) {
    throw refused(problem?.message ?? "malformed YAML", path, problem?.line);
  }
  const isMapping = typeof input === "object" && !Array.isArray(input);
  // Other keys are the person's own, but a misspelt one would hide all notes.
  const misspelt = isMapping
    ? Object.keys(input ?? {}).find((key) => key !== "notes" && closest(key, ["notes"]))
    : undefined;
  if (misspelt !== undefined)
    throw refused(`unknown key "${misspelt}". Did you mean "notes"?`, path, lineOf([misspelt]));
  const notes = isMapping ? ((input as { notes?: unknown } | null)?.notes ?? []) : undefined;
  if (Array.isArray(notes) && notes.every((note) => typeof note === "string")) return { document, notes };
  throw refused('it must hold a list of texts under "notes"', path);
}

/** Returns the list in the file. A new list takes over the comments and the anchor of the empty value that it
 *  replaces. */
function findList(yaml: Yaml, { document, notes }: ReturnType<typeof parseNotes>, path: string): YAMLSeq {
  if (document.contents === null || yaml.isScalar(document.contents)) {
    const { commentBefore } = document.contents ?? {};
    document.contents = document.createNode({});
    document.contents.commentBefore = commentBefore;
  }
  const value = document.get("notes", true) as unknown;
  if (yaml.isSeq(value)) return value;
  if (notes.length > 0) throw refused('"notes" is an alias of another list in the file. Write the list here', path);
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

function refused(message: string, file: string, line = 1): ContextError {
  return new ContextError("invalid_content", message, { file, line });
}

function notesPath(root: string): string {
  return join(root, ".plimsoll", "notes.yaml");
}
