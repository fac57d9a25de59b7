/** The state of the files that an agent is asked to change, as one hash: a second look shows whether anything changed. */
import { createHash } from "node:crypto";
import type { Dirent } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { createGlob, expandBraces, type Glob } from "../../core/text/index.ts";
import { isInside, readForeign } from "../../host/index.ts";

/** Returns the same hash as long as no file in the scope is added, removed or changed. A pattern that names a folder
 *  stands for everything below it. Files that git ignores count; other folders' `node_modules` and `.git` do not, and
 *  neither does anything outside of the directory. */
export async function readScopeState(directory: string, scope: readonly string[]): Promise<string> {
  const files = new Set<string>();
  for (const pattern of scope.flatMap((each) => expandBraces(each) ?? [each])) {
    for (const file of await filesOf(normal(pattern), directory)) files.add(file);
  }
  const hash = createHash("sha256");
  const budget = { bytes: mostBytes };
  for (const file of [...files].sort())
    hash.update(`${JSON.stringify(file)} ${await contentOf(join(directory, file), budget)}\n`);
  return hash.digest("hex");
}

/** Larger files, and files after this many bytes, are compared by size and time. */
const largeFile = 1_000_000;
const mostBytes = 64_000_000;

function normal(pattern: string): string {
  return pattern
    .trim()
    .replace(/\/{2,}/g, "/")
    .replace(/^(?:\.?\/)+/, "")
    .replace(/\/$/, "");
}

async function filesOf(pattern: string, directory: string): Promise<string[]> {
  const names = pattern.split("/");
  const firstWild = names.findIndex((name) => /[*?[\\]/.test(name));
  const start = join(directory, ...names.slice(0, firstWild === -1 ? undefined : firstWild));
  if (start !== directory && !isInside(start, directory)) return [];
  const written = [createGlob(`/${pattern}`), createGlob(`/${pattern}/**`)].filter((each) => each !== undefined);
  // In some frameworks `[id]` is the name of a folder.
  const asName: Glob = (path) => path === pattern || path.startsWith(`${pattern}/`);
  const globs = pattern === "" || pattern === "." ? [() => true] : [...written, asName];
  const found: string[] = [];
  await walk(start, { directory, found, globs });
  return found;
}

interface Walk {
  readonly directory: string;
  readonly globs: readonly Glob[];
  readonly found: string[];
}

async function walk(path: string, walking: Walk): Promise<void> {
  const { directory, globs, found } = walking;
  const entries = await readdir(path, { withFileTypes: true }).catch(() => undefined);
  if (entries === undefined) {
    const name = relative(directory, path).split(sep).join("/");
    if (globs.some((matches) => matches(name))) found.push(name);
    return;
  }
  for (const entry of entries) {
    const inside = join(path, entry.name);
    if (entry.isDirectory() && !isSkipped(entry)) await walk(inside, walking);
    else if (!entry.isDirectory()) {
      const name = relative(directory, inside).split(sep).join("/");
      if (globs.some((matches) => matches(name))) found.push(name);
    }
  }
}

function isSkipped({ name }: Dirent): boolean {
  return name === ".git" || name === "node_modules";
}

async function contentOf(path: string, budget: { bytes: number }): Promise<string> {
  try {
    const stats = await lstat(path);
    if (stats.isSymbolicLink()) return `link ${await readlink(path)}`;
    const isLarge = stats.size > largeFile || stats.size > budget.bytes;
    if (!stats.isFile() || isLarge) return `${stats.size} ${stats.mtimeMs} ${stats.mode}`;
    budget.bytes -= stats.size;
    const bytes = readForeign(path, { refuseLink: true, maxBytes: largeFile });
    if (!Buffer.isBuffer(bytes)) return bytes.reason;
    return `${stats.mode & 0o111} ${createHash("sha256").update(bytes).digest("hex")}`;
  } catch {
    return "none";
  }
}
