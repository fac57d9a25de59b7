import { type Line, scanLines } from "./fences.ts";

/** The text, with a closing fence behind it where one is left open: what follows must not be taken for code. */
export function closeFence(text: string): string {
  const open = openFence(text);
  if (open === undefined) return text;
  return `${text}${text.endsWith("\n") ? "" : "\n"}${closerOf(text, open)}`;
}

/** The beginning of the text up to an open fence that has no code behind it: cut there, it would only be closed again. */
export function withoutBareFence(text: string): string {
  const open = openFence(text);
  const isBare = open !== undefined && text.slice(open.end).trim() === "";
  return isBare ? text.slice(0, open.start).trimEnd() : text;
}

function openFence(text: string): Line | undefined {
  const mayHaveOne = text.includes("```") || text.includes("~~~");
  return mayHaveOne ? scanLines(text, () => {}) : undefined;
}

/** In the column of the opener, where a list item may hold it. */
function closerOf(text: string, { start, end }: Line): string {
  const marks = /`{3,}|~{3,}/.exec(text.slice(start, end))!;
  return `${" ".repeat(marks.index)}${marks[0]}`;
}
