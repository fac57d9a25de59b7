/** From a key of a YAML file to its line. Files that cannot be read were reported when they were loaded: their line is 1. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { loadYaml } from "../../workspace/index.ts";

export interface LineFinder {
  /** 1-based. */
  lineOf(file: string, key: readonly (string | number)[]): number;
  /** Where the profile of this id lies; undefined for one that is built in. */
  profileFile(id: string): string | undefined;
}

/** Of the layers' directories the last one with a profile counts, as when they are loaded. */
export async function createLineFinder(directories: readonly string[]): Promise<LineFinder> {
  const { readYaml } = await loadYaml();
  const cache = new Map<string, ReturnType<typeof readYaml>>();
  const read = (file: string): ReturnType<typeof readYaml> => {
    const known = cache.get(file) ?? readYaml(textOf(file));
    cache.set(file, known);
    return known;
  };
  const profiles = new Map<string, string>();
  for (const file of directories.flatMap(profileFiles)) {
    const id = (read(file).input as { readonly id?: unknown } | null | undefined)?.id;
    if (typeof id === "string") profiles.set(id, file);
  }
  return { profileFile: (id) => profiles.get(id), lineOf: (file, key) => read(file).lineOf(key) };
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
