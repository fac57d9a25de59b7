import { type OpenFence, scanLines } from "./fences.ts";

/** The text, with a closing fence behind it where one is left open: what follows must not be taken for code. */
export function closeFence(text: string): string {
  const open = openFence(text);
  if (open === undefined) return text;
  return `${text}${text.endsWith("\n") ? "" : "\n"}${open.closer}`;
}

/** The beginning of the text up to an open fence that has no code behind it: cut there, it would only be closed again. */
export function withoutBareFence(text: string): string {
  const open = openFence(text);
  const isBare = open !== undefined && text.slice(open.end).trim() === "";
  return isBare ? text.slice(0, open.start).trimEnd() : text;
}

function openFence(text: string): OpenFence | undefined {
  const mayHaveOne = text.includes("```") || text.includes("~~~");
  return mayHaveOne ? scanLines(text, () => {}) : undefined;
}
