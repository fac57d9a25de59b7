/** JSON Lines as programs leave them behind: with a byte order mark, blank lines, and a last line that a killed writer cut off. */
import { ContextError } from "../../errors.ts";

export interface JsonLine {
  readonly value: unknown;
  /** 1-based. */
  readonly line: number;
}

export interface JsonLines {
  readonly lines: readonly JsonLine[];
  readonly notes: readonly string[];
}

/** Every line that is not blank, parsed. Only the last line may be broken, and then a note says so. */
export function parseJsonLines(text: string, file: string): JsonLines {
  const lines: JsonLine[] = [];
  const notes: string[] = [];
  const end = text.trimEnd().length;
  for (let start = 0, line = 1; start < end; line++) {
    const stop = lineEnd(text, start);
    const raw = text.slice(start, stop);
    const isLast = stop >= end;
    start = stop + 1;
    if (raw.trim() === "") continue;
    try {
      lines.push({ value: JSON.parse(raw), line });
    } catch (cause) {
      if (!isLast || lines.length === 0) throw notJson(raw, { file, line, cause });
      notes.push(`line ${line} is cut off and was left out`);
    }
  }
  return { lines, notes };
}

export function withoutByteOrderMark(text: string): string {
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}

function lineEnd(text: string, start: number): number {
  const stop = text.indexOf("\n", start);
  return stop < 0 ? text.length : stop;
}

function notJson(raw: string, details: { file: string; line: number; cause: unknown }): ContextError {
  const shown = raw.trim().slice(0, 40);
  return new ContextError("unreadable_input", `no JSON: ${JSON.stringify(shown)}`, {
    ...details,
    hint: "A session file has one JSON object a line, a request is one JSON value.",
  });
}
