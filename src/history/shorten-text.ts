/** Keeps the beginning and the end of a text. A surrogate pair is never cut, and the same numbers give the same bytes. */
export function shortenText(text: string, { head, tail }: { head: number; tail: number }): string {
  if (head + tail >= text.length) return text;
  const start = isHighSurrogate(text, head - 1) ? head - 1 : head;
  const end = isLowSurrogate(text, text.length - tail) ? text.length - tail + 1 : text.length - tail;
  return `${text.slice(0, start)}\n[trimmed: ${end - start} characters]\n${text.slice(end)}`;
}

function isHighSurrogate(text: string, index: number): boolean {
  const code = text.charCodeAt(index);
  return code >= 0xd800 && code < 0xdc00;
}

function isLowSurrogate(text: string, index: number): boolean {
  const code = text.charCodeAt(index);
  return code >= 0xdc00 && code < 0xe000;
}
