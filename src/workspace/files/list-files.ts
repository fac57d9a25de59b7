/** The files below a directory that git would not leave out. */
import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { IgnoreRules } from "./ignore-rules.ts";
import { systemReason, type Unread } from "./read-text.ts";

export interface FileList {
  files: string[];
  skipped: (Unread & { path: string })[];
}

/** Paths are absolute and in a fixed order. Links are never followed, so a tree has no loops and no file counts twice. */
export async function listFiles(directory: string): Promise<FileList> {
  const list: FileList = { files: [], skipped: [] };
  // Most commands list nothing: they start faster without the library behind the rules.
  const { openIgnoreRules } = await import("./ignore-rules.ts");
  const pending = [{ directory, rules: await openIgnoreRules(directory) }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const entries = await readEntries(next.directory, list);
    const directories = sortEntries(entries, { ...next, list });
    for (const child of directories.reverse())
      pending.push({ directory: child, rules: await next.rules.enter(child) });
  }
  return list;
}

async function readEntries(directory: string, list: FileList): Promise<Dirent[]> {
  try {
    return await readdir(directory, { withFileTypes: true });
  } catch (error) {
    list.skipped.push({ path: directory, reason: systemReason(error), kind: "failed" });
    return [];
  }
}

interface Place {
  directory: string;
  rules: IgnoreRules;
  list: FileList;
}

/** Puts files and what is skipped into the list, and returns the directories to go on with. */
function sortEntries(entries: readonly Dirent[], { directory, rules, list }: Place): string[] {
  const directories: string[] = [];
  const sorted = [...entries].sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of sorted) {
    const path = join(directory, entry.name);
    if (rules.ignores(path, entry.isDirectory() ? "directory" : "file")) continue;
    if (entry.isDirectory()) directories.push(path);
    else if (entry.isFile()) list.files.push(path);
    else
      list.skipped.push({
        path,
        kind: "special",
        reason: entry.isSymbolicLink() ? "symbolic link" : "not a file",
      });
  }
  return directories;
}
