import { cutText } from "./cut-text.ts";

/** One line of at most `maxCharacters` (UTF-16 units, as `length` counts): white space runs become one space, and what is cut ends
 *  with `…`. A surrogate pair is never cut in half. */
export function shorten(text: string, maxCharacters: number): string {
  // Twice the length suffices for ordinary text; only what is mostly white space is looked at whole.
  const enough = maxCharacters * 2 + 2;
  const beginning = oneLine(text.slice(0, enough));
  const line = beginning.length > maxCharacters || text.length <= enough ? beginning : oneLine(text);
  if (line.length <= maxCharacters) return line;
  const { text: start } = cutText(line, Math.max(0, maxCharacters - 1));
  return `${start.trimEnd()}…`.slice(0, maxCharacters);
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
