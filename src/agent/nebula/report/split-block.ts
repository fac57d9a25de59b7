/** Lines of a fabric block that can be read together. */
export interface Piece {
  /** Number of the first, 1-based. */
  readonly line: number;
  readonly lines: string[];
}

export interface Section {
  readonly key: string;
  /** The line of the key, and all up to the first entry. */
  readonly head: Piece;
  readonly entries: Piece[];
}

export interface SplitBlock {
  readonly sections: readonly Section[];
  /** Numbers of lines that stand before the first key and say something. */
  readonly strays: readonly number[];
}

/** The block by its keys, which are as far in as its first line, and their entries, whether it is YAML or not. */
export function splitBlock(block: string): SplitBlock {
  const lines = block.split(/\r?\n/);
  const base = indentOf(lines.find(saysSomething) ?? "");
  const sections: Section[] = [];
  const strays: number[] = [];
  for (const [index, text] of lines.entries()) {
    const line = index + 1;
    const key = indentOf(text) === base ? keyLine.exec(text)?.[1] : undefined;
    const section = sections.at(-1);
    if (key !== undefined) sections.push({ key, head: { line, lines: [text] }, entries: [] });
    else if (section !== undefined) addLine(section, text, line);
    else if (saysSomething(text)) strays.push(line);
  }
  return { sections, strays };
}

const keyLine = /^[ \t]*([A-Za-z][\w-]*):(?:[ \t]|$)/;
const entryLine = /^[ \t]*-(?:[ \t]|$)/;

function indentOf(line: string): number {
  return line.search(/[^ \t]|$/);
}

function saysSomething(line: string): boolean {
  return /^[ \t]*[^ \t#]/.test(line);
}

/** A mark of a list that is further in than the first one of its section belongs to an entry. */
function addLine({ head, entries }: Section, text: string, line: number): void {
  const depth = indentOf(entries[0]?.lines[0] ?? text);
  if (entryLine.test(text) && indentOf(text) <= depth) entries.push({ line, lines: [text] });
  else (entries.at(-1) ?? head).lines.push(text);
}
