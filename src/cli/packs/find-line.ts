/** From a key of a YAML file to its line. Files that cannot be read were reported when they were loaded: their line is 1. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Document, LineCounter } from "yaml";

export interface LineFinder {
  /** 1-based. */
  lineOf(file: string, key: readonly (string | number)[]): number;
  /** Where the profile of this id lies; undefined for one that is built in. */
  profileFile(id: string): string | undefined;
}

interface ReadYaml {
  readonly document: Document;
  readonly lines: LineCounter;
}

/** Of the layers' directories the last one with a profile counts, as when they are loaded. */
export async function createLineFinder(directories: readonly string[]): Promise<LineFinder> {
  const { LineCounter, parseDocument, isNode } = await import("yaml");
  const cache = new Map<string, ReadYaml>();
  const read = (file: string): ReadYaml => {
    const lines = new LineCounter();
    const known = cache.get(file) ?? { document: parseDocument(textOf(file), { lineCounter: lines }), lines };
    cache.set(file, known);
    return known;
  };
  const profiles = new Map<string, string>();
  for (const file of directories.flatMap(profileFiles)) {
    const id: unknown = read(file).document.get("id");
    if (typeof id === "string") profiles.set(id, file);
  }
  return {
    profileFile: (id) => profiles.get(id),
    lineOf(file, key) {
      const { document, lines } = read(file);
      const node = document.getIn(key, true);
      return isNode(node) && node.range ? lines.linePos(node.range[0]).line || 1 : 1;
    },
  };
}

function profileFiles(directory: string): string[] {
  const folder = join(directory, "profiles");
  try {
    const names = readdirSync(folder).filter((name) => name.endsWith(".yaml"));
    return names.sort().map((name) => join(folder, name));
  } catch {
    return [];
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
