/** Text from elsewhere that is going to stand in the middle of an author's: within its limit, and with no effect on what surrounds it. */
import { closeFence } from "../markdown/close-fence.ts";
import { forEachLine, scanLines } from "../markdown/fences.ts";
import { truncateBytes } from "./truncate-bytes.ts";

export interface ForeignLimits {
  readonly maxLines?: number | undefined;
  readonly maxBytes?: number | undefined;
}

export interface FittedText {
  /** Empty, or ends with a line break. */
  readonly text: string;
  readonly truncated: boolean;
}

/** Cuts at a line, then leaves out comments at the start of a line, where markers stand, and closes a fence that is left open.
 *  What is added counts: the result is within both limits. */
export function fitForeignText(text: string, limits: ForeignLimits = {}): FittedText {
  const { maxLines = Number.POSITIVE_INFINITY, maxBytes = Number.POSITIVE_INFINITY } = limits;
  const clean = withoutComments(text.replace(/\r\n?/g, "\n").replace(/^\uFEFF/, "")).trim();
  const whole = clean === "" ? "" : `${clean}\n`;
  let kept = whole;
  for (let lines = maxLines, bytes = maxBytes; ; ) {
    kept = truncateBytes(firstLines(kept, lines), bytes).text;
    const closed = withClosedFence(kept);
    const [extraLines, extraBytes] = [countLines(closed) - maxLines, Buffer.byteLength(closed) - maxBytes];
    if (kept === "" || (extraLines <= 0 && extraBytes <= 0))
      return { text: closed, truncated: kept !== whole };
    // Shrinks by at least one byte a round, and by what the closing fence takes at once.
    lines = extraLines > 0 ? countLines(kept) - extraLines : lines;
    bytes = extraBytes > 0 ? Buffer.byteLength(kept) - extraBytes : bytes;
  }
}

/** Only whole lines of comments can be markers of ours; a comment that never ends would hide what follows. */
function withoutComments(text: string): string {
  if (!text.includes("<!--")) return text;
  const kept: string[] = [];
  scanLines(text, (line, kind) => {
    const content = text.slice(line.start, line.end);
    if (kind === "comment") {
      kept.push(behindComment(content));
    } else if (kind === "text" && /^[ \t]*<!--/.test(content)) {
      const rest = content.replace(/^(?:[ \t]*<!--(?:(?!-->).)*-->)+/, "").replace(/^[ \t]*<!--/, "&lt;!--");
      if (rest.trim() !== "") kept.push(`${rest}\n`);
    } else kept.push(text.slice(line.start, line.next));
  });
  return kept.join("");
}

/** The last line of a comment may go on as text, and that may be the start of another one. */
function behindComment(line: string): string {
  const end = line.lastIndexOf("-->");
  const rest = end === -1 ? "" : line.slice(end + 3).replace("<!--", "&lt;!--");
  return rest.trim() === "" ? "" : `${rest}\n`;
}

function firstLines(text: string, count: number): string {
  let end = count > 0 ? text.length : 0;
  forEachLine(text, ({ number, next }) => {
    if (number === count) end = next;
  });
  return text.slice(0, end);
}

function countLines(text: string): number {
  let count = 0;
  forEachLine(text, () => {
    count++;
  });
  return count;
}

function withClosedFence(text: string): string {
  const closed = closeFence(text);
  return closed === text ? text : `${closed}\n`;
}
