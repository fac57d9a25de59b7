import { scanLines } from "./fences.ts";

/** The names that a text imports, as Claude Code and Gemini CLI read it: `@name` at the start of a word, outside code. */
export function importedNames(text: string): string[] {
  const names: string[] = [];
  // Most texts import nothing, and reading them as Markdown takes longer than all else that is done with them.
  let at = text.indexOf("@");
  if (at === -1) return names;
  scanLines(text, ({ start, end }, kind) => {
    if (at !== -1 && at < start) at = text.indexOf("@", start);
    if (kind !== "text" || at === -1 || at >= end) return;
    const line = text.slice(start, end).replace(/`[^`]*`/g, "");
    for (const [, named] of line.matchAll(/(?<=^|\s)@(~\/[^\s]+|[\w./-]+)/g))
      names.push(named!.replace(/[.,;:]+$/, ""));
  });
  return names;
}
