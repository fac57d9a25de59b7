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
  const [before, after] = [text.charCodeAt(index - 1), text.charCodeAt(index)];
  return isHigh(before) && isLow(after) ? index - 1 : index;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}
