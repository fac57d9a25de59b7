import { isInsidePair } from "../text/index.ts";

/** One line of at most `maxCharacters` (UTF-16 units, as `length` counts): white space runs become one space, and what is cut ends
 *  with `…`. A surrogate pair is never cut in half. */
export function shorten(text: string, maxCharacters: number): string {
  // Twice the length suffices for ordinary text; only what is mostly white space is looked at whole.
  const enough = maxCharacters * 2 + 2;
  const start = oneLine(text.slice(0, enough));
  const line = start.length > maxCharacters || text.length <= enough ? start : oneLine(text);
  if (line.length <= maxCharacters) return line;
  const end = Math.max(0, maxCharacters - 1);
  return `${line.slice(0, wholeCharacters(line, end)).trimEnd()}…`.slice(0, maxCharacters);
}

/** The largest index up to `index` that does not lie inside a surrogate pair. */
export function wholeCharacters(text: string, index: number): number {
  return isInsidePair(text, index) ? index - 1 : index;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
