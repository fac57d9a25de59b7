/** The texts that are counted: a labelled corpus, or the repository's own files with the exact counters as the truth. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { createCounter, type Family } from "../../src/core/tokens/index.ts";
import { readTextFile } from "../../src/host/index.ts";
import { chunkText } from "./chunk-text.ts";

export interface BenchText {
  readonly category: string;
  readonly text: string;
  /** The true count of each family that has one. */
  readonly tokens: Readonly<Partial<Record<Family, number>>>;
}

const MAX_CHUNK_UNITS = 4_000;
/** So that a lock file or a table of data does not drown the rest. */
const MAX_CHUNKS_A_FILE = 12;

export async function readRepository(root: string): Promise<BenchText[]> {
  const o200k = await createCounter("exact:o200k");
  const cl100k = await createCounter("exact:cl100k");
  const texts: BenchText[] = [];
  for (const path of listTrackedFiles(root)) {
    const read = await readTextFile(join(root, path));
    if (!("text" in read)) continue;
    for (const text of chunkText(read.text, MAX_CHUNK_UNITS).slice(0, MAX_CHUNKS_A_FILE)) {
      const tokens = { o200k: o200k.count(text), cl100k: cl100k.count(text) };
      texts.push({ category: categoryOf(path), text, tokens });
    }
  }
  return texts;
}

/** The first and the second half of every category: alike in kind, and of mostly different sources. */
export function splitInHalves(texts: readonly BenchText[]): { seen: BenchText[]; unseen: BenchText[] } {
  const halves = groupByCategory(texts).map(([, group]) => {
    const middle = Math.ceil(group.length / 2);
    return { seen: group.slice(0, middle), unseen: group.slice(middle) };
  });
  return { seen: halves.flatMap((half) => half.seen), unseen: halves.flatMap((half) => half.unseen) };
}

/** In the categories' alphabetical order. */
export function groupByCategory<T extends { readonly category: string }>(items: readonly T[]): [string, T[]][] {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(item.category);
    if (group === undefined) groups.set(item.category, [item]);
    else group.push(item);
  }
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
}

export function bytesOf(texts: readonly BenchText[]): number {
  return texts.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
}

function listTrackedFiles(root: string): string[] {
  return execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" }).split("\0").filter(Boolean);
}

/** The extension; tests and tables of data are other kinds of text than code. */
function categoryOf(path: string): string {
  return /[^/]\.((?:(?:test|data)\.)?\w+)$/.exec(path)?.[1] ?? "other";
}
