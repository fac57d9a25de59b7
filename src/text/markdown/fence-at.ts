/** Fences one by one, for whoever may not believe one that is never closed. */
import { isBlank, listMarkEnd } from "./containers.ts";
import { type Line, marksAt, skipBlanks } from "./fences.ts";

/** The fence that a line is, whatever surrounds it. */
export interface Fence {
  readonly mark: "`" | "~";
  readonly length: number;
  /** Column of the first mark. */
  readonly column: number;
  /** Behind a list marker, so that it belongs to the item and ends with it. */
  readonly inItem: boolean;
  readonly canOpen: boolean;
  readonly canClose: boolean;
}

/** Any indentation counts, and a fence behind a list marker is one, since a list item may hold it. */
export function fenceAt(text: string, { start, end }: Line): Fence | undefined {
  const indented = skipBlanks(text, start, end);
  const at = skipListMarks(text, indented, end);
  const marks = marksAt(text, at, end);
  if (marks === undefined) return undefined;
  const { mark, length, canOpen } = marks;
  const inItem = at !== indented;
  const canClose = !inItem && skipBlanks(text, marks.end, end) === end;
  return { mark, length, column: at - start, inItem, canOpen, canClose };
}

/** A closer stands at most three columns to the right of where its container starts. */
export function closes(opener: Fence, fence: Fence): boolean {
  const mostColumn = opener.column <= 3 ? 3 : opener.column + 3;
  return (
    fence.canClose &&
    fence.mark === opener.mark &&
    fence.length >= opener.length &&
    fence.column <= mostColumn
  );
}

/** `- 1. text` → where the text starts. */
function skipListMarks(text: string, start: number, end: number): number {
  let at = start;
  for (;;) {
    const behind = listMarkEnd(text, at);
    if (behind === at || behind >= end || !isBlank(text.charCodeAt(behind))) return at;
    at = skipBlanks(text, behind, end);
  }
}
