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

/** Cuts at a line, then leaves out comments at the start of a line, where markers stand, closes a fence that is left open, and escapes
 *  what an agent would take for an import. What is added counts: the result is within both limits. */
export function fitForeignText(text: string, limits: ForeignLimits = {}): FittedText {
  const { maxLines = Number.POSITIVE_INFINITY, maxBytes = Number.POSITIVE_INFINITY } = limits;
  const clean = withoutComments(text.replace(/\r\n?/g, "\n").replace(/^\uFEFF/, "")).trim();
  const whole = clean === "" ? "" : `${clean}\n`;
  let kept = whole;
  for (let lines = maxLines, bytes = maxBytes; ; ) {
    kept = truncateBytes(firstLines(kept, lines), bytes).text;
    const closed = withoutImports(withClosedFence(kept));
    const [extraLines, extraBytes] = [countLines(closed) - maxLines, Buffer.byteLength(closed) - maxBytes];
    if (kept === "" || (extraLines <= 0 && extraBytes <= 0))
      return { text: closed, truncated: kept !== whole };
    // Shrinks by at least one byte a round, and by what was added at once.
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

/** `@path` makes Claude Code and Gemini CLI read a file into the prompt, unless it stands in code. In Markdown `\@` is the same character. */
function withoutImports(text: string): string {
  if (!text.includes("@")) return text;
  const kept: string[] = [];
  let isSure = true;
  scanLines(text, (line, kind) => {
    const content = text.slice(line.start, line.next);
    // No code within a line goes on behind these.
    if (kind !== "text" || content.trim() === "") isSure = true;
    const escaped = kind === "text" ? escapeImports(content, isSure) : { text: content, isSure };
    kept.push(escaped.text);
    isSure = escaped.isSure;
  });
  return kept.join("");
}

interface EscapedLine {
  readonly text: string;
  /** Whether it is clear where code begins and ends: a backtick without its partner may have one in a line below, and one in a tag is none. */
  readonly isSure: boolean;
}

/** Once it is not sure what is code, all is escaped. */
function escapeImports(line: string, wasSure: boolean): EscapedLine {
  const mark = /\\.|`+|<(?=[a-z/!?])|@(?=\S)/gi;
  let [text, from, isSure] = ["", 0, wasSure];
  for (let found = mark.exec(line); found !== null; found = mark.exec(line)) {
    const [{ 0: first, length }, at] = [found[0], found.index];
    if (first === "`") {
      const end = isSure ? codeEnd(line, mark.lastIndex, length) : -1;
      if (end === -1) isSure = false;
      else mark.lastIndex = end;
    } else if (first === "<") isSure = false;
    else if (first === "@" && !withinWord.test(line.slice(Math.max(0, at - 1), at))) {
      text += `${line.slice(from, at)}\\`;
      from = at;
    }
  }
  return { text: text + line.slice(from), isSure };
}

/** Behind these `@` belongs to an address, and no parser begins a text of its own. */
const withinWord = /[\p{L}\p{N}/.:=+%,;?-]/u;

/** Behind the mark that closes code within a line. Only of the plain kind, one mark on either side: readers differ on others. */
function codeEnd(line: string, from: number, length: number): number {
  const end = line.indexOf("`", from);
  return length === 1 && end !== -1 && line[end + 1] !== "`" ? end + 1 : -1;
}
