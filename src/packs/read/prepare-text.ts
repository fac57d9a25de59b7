/** Makes a pack's text safe to stand inside a marked block together with others: it neither ends the block nor swallows what follows. */
import { closeFence, type Line, type SegmentWarning, scanLines } from "../../text/index.ts";

export interface PreparedText {
  readonly text: string;
  readonly warnings: readonly SegmentWarning[];
  /** The line of the given text that a line of the prepared one was. */
  originalLine(line: number): number;
}

/** Leaves out markers that are not for the reader, and closes what the author left open. Everything else stays byte for byte. */
export function prepareText(text: string): PreparedText {
  const warnings: SegmentWarning[] = [];
  let body = text;
  let originalLine = (line: number): number => line;
  const warn = ({ line, message }: SegmentWarning) => warnings.push({ line: originalLine(line), message });
  // A line that goes may have closed a comment and so change what the lines below are: look again until nothing goes.
  for (;;) {
    const found = scan(body);
    found.warnings.forEach(warn);
    if (found.dropped.length === 0) return { text: body + closing(body, found), warnings, originalLine };
    const outer = originalLine;
    originalLine = (line) =>
      outer(found.dropped.reduce((number, each) => (each <= number ? number + 1 : number), line));
    body = found.kept.join("");
  }
}

interface Scan {
  readonly kept: string[];
  /** Line numbers, ascending. */
  readonly dropped: number[];
  readonly warnings: SegmentWarning[];
  openFence?: Line | undefined;
  openComment?: Line | undefined;
}

function scan(text: string): Scan {
  const found: Scan = { kept: [], dropped: [], warnings: [] };
  if (!mayNeedWork(text)) return found;
  const lastCommentEnd = text.lastIndexOf("-->");
  let inMarker = false;
  found.openFence = scanLines(text, (line, kind) => {
    const content = text.slice(line.start, line.end);
    const marker = kind === "text" || kind === "comment" ? droppedMarker(content) : undefined;
    inMarker = marker !== undefined || (inMarker && kind === "comment");
    if (marker !== undefined) found.warnings.push({ line: line.number, message: marker });
    if (inMarker) found.dropped.push(line.number);
    else found.kept.push(text.slice(line.start, line.next));
    if (kind === "text" && line.start > lastCommentEnd && /^ *<!--/.test(content)) found.openComment ??= line;
    if (content.includes("-->")) inMarker = false;
  });
  if (found.dropped.length > 0) return found;
  if (found.openFence) found.warnings.push({ line: found.openFence.number, message: unclosedFence });
  if (found.openComment) found.warnings.push({ line: found.openComment.number, message: unclosedComment });
  return found;
}

/** Most texts have neither comments nor code, and need not be looked at line by line. */
function mayNeedWork(text: string): boolean {
  return text.includes("<!--") || text.includes("```") || text.includes("~~~");
}

const unfetched = "a sync:fetch marker that was not fetched yet is left out. Run `plimsoll sync`.";
const ownMarker =
  "a marker of plimsoll's own blocks is left out: it would end the block early. Put it into a code fence.";
const unclosedFence = "a code fence is never closed. It is closed at the end of the file.";
const unclosedComment = "an HTML comment is never closed. It is closed at the end of the file.";

/** Only a marker that has its line to itself: text that mentions one is for the reader. */
function droppedMarker(line: string): string | undefined {
  if (!/^\s*<!--/.test(line)) return undefined;
  if (/^\s*<!--\s*sync:fetch\b(?:(?!-->).)*(?:-->\s*)?$/.test(line)) return unfetched;
  return /^\s*<!--\s*plimsoll:(?:start|end|owns)\b.*-->\s*$/.test(line) ? ownMarker : undefined;
}

function closing(text: string, { openFence, openComment }: Scan): string {
  if (openComment !== undefined) return `${text.endsWith("\n") ? "" : "\n"}-->\n`;
  return openFence === undefined ? "" : `${closeFence(text).slice(text.length)}\n`;
}
