/** What tool calls say: their input, and the files that they read and edit. Fields and tools have the names that coding
 *  agents use (Claude Code, Codex, pi, OpenHands, opencode; 2026-11). */
import type { Part } from "./message-format.ts";

/** Returns the input of a call, or undefined for another part. OpenAI's arguments are JSON text, but a model may have
 *  written something else; then that text is returned. */
export function inputOf({ pieces }: Pick<Part, "pieces">): unknown {
  for (const piece of pieces) if (piece.kind === "tool_call") return parsed(piece.args);
  return undefined;
}

function parsed(args: unknown): unknown {
  if (typeof args !== "string") return args;
  try {
    return JSON.parse(args);
  } catch {
    return args;
  }
}

/** Returns all readable texts of a part. For a call these are the strings in its input. */
export function textsOf({ pieces }: Pick<Part, "pieces">): string[] {
  const texts: string[] = [];
  for (const piece of pieces) {
    if (piece.kind === "tool_call") texts.push(...textsIn(parsed(piece.args)));
    else if ("text" in piece) texts.push(piece.text);
  }
  return texts;
}

/** Returns the note that the agent left in a thinking part: the first sentence of its readable text, as it stands
 *  there. Undefined if there is none. Models that bind thinking return the text between tool calls as thinking. */
export function noteIn(part: Pick<Part, "kind" | "pieces">): string | undefined {
  if (part.kind !== "thinking") return undefined;
  const [text = ""] = textsOf(part);
  const maxLength = 200;
  const [line = ""] = text.trimStart().slice(0, maxLength).split("\n", 1);
  const end = /[.!?](?=\s|$)/.exec(line);
  const note = (end === null ? line : line.slice(0, end.index + 1)).trim();
  const minLength = 8;
  return note.length < minLength || /[\p{Cc}\p{Cs}]/u.test(note) ? undefined : note;
}

/** Returns all strings in a value, in order. */
export function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

/** The fields that say what a call is about, most telling first. */
export const subjectKeys: readonly string[] = [
  "file_path",
  "filePath",
  "path",
  "filename",
  "url",
  "pattern",
  "query",
  "command",
  "cmd",
];

/** Returns what a call is about: the first of its fields that fits on a line. */
export function subjectOf(input: unknown): string | undefined {
  const maxLength = 60;
  for (const key of subjectKeys) {
    const value: unknown = Object(input)[key];
    if (typeof value === "string" && /^[\x20-\x5a\x5c\x5e-\x7e]+$/.test(value)) return value.slice(0, maxLength);
  }
  return undefined;
}

const replacedKeys = ["old_string", "old_str", "oldText", "oldString"];

/** Returns the files of a call, as the call names them. */
export function filesOf(part: Pick<Part, "pieces" | "toolName">): {
  /** The file that the call reads or edits. */
  readonly path?: string | undefined;
  readonly edited: readonly string[];
  /** The texts that it replaces in the files that it edits. */
  readonly replaced: readonly string[];
} {
  const input = inputOf(part);
  if (input === undefined) return { edited: [], replaced: [] };
  const replaced = replacedIn(input);
  const pathKeys = ["file_path", "filePath", "path", "filename"];
  const [path] = stringsAt(input, pathKeys);
  const editingTool = /write|edit|create|replace|patch/i;
  const isEdit = replaced.length > 0 || editingTool.test(part.toolName ?? "");
  const patched: string[] = [];
  const patchedFile = /^\*\*\* (?:Update|Add|Delete) File: (.+)$/gm;
  for (const text of textsOf(part)) for (const [, file = ""] of text.matchAll(patchedFile)) patched.push(file.trim());
  return { path, edited: [...(isEdit && path !== undefined ? [path] : []), ...patched], replaced };
}

/** Returns the texts that an edit replaces. */
export function replacedIn(input: unknown): string[] {
  const { edits } = Object(input) as { edits?: unknown };
  const inList = Array.isArray(edits) ? edits.flatMap((edit) => stringsAt(edit, replacedKeys)) : [];
  return [...stringsAt(input, replacedKeys), ...inList];
}

function stringsAt(fields: unknown, keys: readonly string[]): string[] {
  const values = keys.map((key): unknown => Object(fields)[key]);
  return values.filter((value) => typeof value === "string").filter((value) => value !== "");
}
