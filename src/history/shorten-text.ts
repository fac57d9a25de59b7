import { isInsidePair } from "../text/index.ts";

/** Keeps the beginning and the end of a text. A surrogate pair is never cut, and the same numbers give the same bytes. */
export function shortenText(text: string, { head, tail }: { head: number; tail: number }): string {
  if (head + tail >= text.length) return text;
  const start = isInsidePair(text, head) ? head - 1 : head;
  const rest = text.length - tail;
  const end = isInsidePair(text, rest) ? rest + 1 : rest;
  return `${text.slice(0, start)}\n[trimmed: ${end - start} characters]\n${text.slice(end)}`;
}
