/** A text from elsewhere, made safe to stand in an author's text: a fetched page, a person's conventions. */

import { Buffer } from "../bytes.ts";
import { closeFence, forEachLine, scanLines } from "./fences.ts";
import { truncateBytes } from "./wording.ts";

/** Cuts at a line, removes comments at the start of a line (they could be markers), closes an open fence, and escapes
 *  text that an agent would take for an import. The added characters count: the result is within both limits. */
export function fitForeignText(
  text: string,
  limits: { readonly maxLines?: number | undefined; readonly maxBytes?: number | undefined } = {},
): {
  /** Empty, or ends with a line break. */
  readonly text: string;
  readonly truncated: boolean;
} {
  const { maxLines = Number.POSITIVE_INFINITY, maxBytes = Number.POSITIVE_INFINITY } = limits;
  const clean = withoutComments(text.replace(/\r\n?/g, "\n").replace(/^\uFEFF/, "")).trim();
  const whole = clean === "" ? "" : `${clean}\n`;
  let kept = whole;
  for (let lines = maxLines, bytes = maxBytes; ; ) {
    let end = lines > 0 ? kept.length : 0;
    forEachLine(kept, ({ number, next }) => {
      if (number === lines) end = next;
    });
    kept = truncateBytes(kept.slice(0, end), bytes).text;
    const fenced = closeFence(kept);
    const closed = withoutImports(fenced === kept ? kept : `${fenced}\n`);
    const [extraLines, extraBytes] = [countLines(closed) - maxLines, Buffer.byteLength(closed) - maxBytes];
    if (kept === "" || (extraLines <= 0 && extraBytes <= 0)) return { text: closed, truncated: kept !== whole };
    // Each round removes at least one byte, and everything that was added.
    lines = extraLines > 0 ? countLines(kept) - extraLines : lines;
    bytes = extraBytes > 0 ? Buffer.byteLength(kept) - extraBytes : bytes;
  }
}

/** Only a comment that is a whole line can be a marker. A comment without an end would hide the text after it. */
function withoutComments(text: string): string {
  if (!text.includes("<!--")) return text;
  const kept: string[] = [];
  scanLines(text, (line, kind) => {
    const content = text.slice(line.start, line.end);
    if (kind === "comment") {
      // Text may follow the end of a comment, and it may start another comment.
      const end = content.lastIndexOf("-->");
      const rest = end === -1 ? "" : content.slice(end + 3).replace("<!--", "&lt;!--");
      if (rest.trim() !== "") kept.push(`${rest}\n`);
    } else if (kind === "text" && /^[ \t]*<!--/.test(content)) {
      const rest = content.replace(/^(?:[ \t]*<!--(?:(?!-->).)*-->)+/, "").replace(/^[ \t]*<!--/, "&lt;!--");
      if (rest.trim() !== "") kept.push(`${rest}\n`);
    } else kept.push(text.slice(line.start, line.next));
  });
  return kept.join("");
}

function countLines(text: string): number {
  let count = 0;
  forEachLine(text, () => {
    count++;
  });
  return count;
}

/** `@path` makes Claude Code and Gemini CLI read a file into the prompt, unless it is in code. In Markdown `\@` is the
 *  same character. */
function withoutImports(text: string): string {
  if (!text.includes("@")) return text;
  const kept: string[] = [];
  let isSure = true;
  scanLines(text, (line, kind) => {
    const content = text.slice(line.start, line.next);
    // Inline code never continues after these lines.
    if (kind !== "text" || content.trim() === "") isSure = true;
    const escaped = kind === "text" ? escapeImports(content, isSure) : { text: content, isSure };
    kept.push(escaped.text);
    isSure = escaped.isSure;
  });
  return kept.join("");
}

/** Escapes everything once it is not clear what is code. `isSure` says whether the start and end of code are clear: a
 *  backtick without a partner may have one in a later line, and a backtick in a tag does not count. */
function escapeImports(line: string, wasSure: boolean): { readonly text: string; readonly isSure: boolean } {
  // After these characters `@` belongs to an address, and no parser starts an import.
  const withinWord = /[\p{L}\p{N}/.:=+%,;?-]/u;
  const mark = /\\.|`+|<(?=[a-z/!?])|@(?=\S)/gi;
  let [text, from, isSure] = ["", 0, wasSure];
  for (let found = mark.exec(line); found !== null; found = mark.exec(line)) {
    const [{ 0: first, length }, at] = [found[0], found.index];
    if (first === "`") {
      // Only single marks close inline code for sure: parsers differ on others.
      const end = line.indexOf("`", mark.lastIndex);
      isSure &&= length === 1 && end !== -1 && line[end + 1] !== "`";
      if (isSure) mark.lastIndex = end + 1;
    } else if (first === "<") isSure = false;
    else if (first === "@" && !withinWord.test(line.slice(Math.max(0, at - 1), at))) {
      text += `${line.slice(from, at)}\\`;
      from = at;
    }
  }
  return { text: text + line.slice(from), isSure };
}
