import { scanLines } from "./fences.ts";

/** The names that a text imports, as Claude Code and Gemini CLI read it: `@name` at the start of a word, outside code. */
export function importedNames(text: string): string[] {
  const names: string[] = [];
  scanLines(text, ({ start, end }, kind) => {
    if (kind !== "text") return;
    const line = text.slice(start, end).replace(/`[^`]*`/g, "");
    for (const [, named] of line.matchAll(/(?<=^|\s)@(~\/[^\s]+|[\w./-]+)/g))
      names.push(named!.replace(/[.,;:]+$/, ""));
  });
  return names;
}
