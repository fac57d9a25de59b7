/** Labelled texts: every `*.jsonl` of a directory, a line each `{ cat, text, source?, o200k, cl100k, claude3, claude5 }`. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Family } from "../src/core/tokens/index.ts";

export interface LabelledText {
  readonly category: string;
  readonly text: string;
  readonly tokens: Readonly<Record<Family, number>>;
  /** Which of five parts it is in. Parts are consecutive lines of a category, which keeps a repository's texts together. */
  readonly part: number;
}

export const PARTS = 5;

export function readCorpus(directory: string): LabelledText[] {
  const files = readdirSync(directory)
    .filter((name) => name.endsWith(".jsonl"))
    .sort();
  const lines = files.flatMap((name) => readFileSync(join(directory, name), "utf8").split("\n").filter(Boolean));
  const rows = lines.map((line) => JSON.parse(line));
  const sizes = new Map<string, number>();
  for (const { cat } of rows) sizes.set(cat, (sizes.get(cat) ?? 0) + 1);
  const seen = new Map<string, number>();
  return rows.map(({ cat, text, o200k, cl100k, claude3, claude5 }) => {
    const position = seen.get(cat) ?? 0;
    seen.set(cat, position + 1);
    return {
      category: cat,
      text,
      tokens: { o200k, cl100k, "claude-3": claude3, "claude-5": claude5 },
      part: Math.floor((position * PARTS) / sizes.get(cat)!),
    };
  });
}
