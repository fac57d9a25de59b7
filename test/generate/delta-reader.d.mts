import type { readShape } from "../../src/conversation/intake/changing-fields.ts";
import type { readResultLines, unnumbered } from "../../src/conversation/intake/result-lines.ts";

export interface DeltaReader {
  linesIn(text: string, original: string): string[] | undefined;
  linesOf(original: string, lines?: readonly string[]): string[];
  see(
    label: string,
    text: string,
    texts?: readonly string[],
    seen?: { readonly lines?: readonly string[] | undefined; readonly first?: number | undefined },
  ): void;
}

export function createDeltaReader(how: {
  readonly readResultLines: typeof readResultLines;
  readonly unnumbered: typeof unnumbered;
  readonly readShape: typeof readShape;
}): DeltaReader;
