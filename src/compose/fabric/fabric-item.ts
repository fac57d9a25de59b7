import { printable, wellFormed } from "../../text/index.ts";

/** A list line that holds the text whatever it is: what an agent reports must not end its line, open a fence or begin a heading. */
export function fabricItem(text: string): string {
  return `- ${oneLine(text).replace(blockStart, escapeStart)}`;
}

/** White space runs are blanks, control characters visible escapes, and half a surrogate pair is a replacement character. */
export function oneLine(text: string): string {
  return printable(wellFormed(text).replaceAll(/\s+/g, " ").trim());
}

/** What begins a block of Markdown right behind the mark of a list: a heading, fence, quote, tag, rule, or another list. */
const blockStart = /^(?:#{1,6}(?= |$)|`{3}|~{3}|>|<|[-*+](?= |$)|([-*_] ?){3,}$|=+$|\d{1,9}(?=[.)](?: |$)))/;

/** A number is escaped behind its digits, all else before its first character. */
function escapeStart(start: string): string {
  return /^\d/.test(start) ? `${start}\\` : `\\${start}`;
}
