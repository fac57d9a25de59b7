import type { readResultLines, unnumbered } from "../../src/conversation/intake/result-lines.ts";

export interface DeltaReader {
  linesIn(text: string, original: string): string[] | undefined;
  linesOf(original: string): string[];
  see(label: string, text: string, texts?: readonly string[]): void;
}

export function createDeltaReader(how: {
  readonly readResultLines: typeof readResultLines;
  readonly unnumbered: typeof unnumbered;
}): DeltaReader;
