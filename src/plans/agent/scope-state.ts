/** The state of the files that an agent is asked to change, as one hash: a second look shows whether anything changed. */
import { createHash } from "node:crypto";
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
    for (const file of await findFiles(pattern, directory)) files.add(file);
  }
  const hash = createHash("sha256");
  const budget = { bytes: 64_000_000 };
  for (const file of [...files].sort())
    hash.update(`${JSON.stringify(file)} ${await describeContent(join(directory, file), budget)}\n`);
  return hash.digest("hex");
}

/** Returns a function that says whether a path, relative to the working directory, is in a scope. */
export function createScopeTest(scope: readonly string[]): (path: string) => boolean {
  const tests = scope.flatMap((each) => expandBraces(each) ?? [each]).map((each) => patternTest(plainPattern(each)));
  return (path) => tests.some((matches) => matches(path));
}

/** Removes what does not change the meaning of a pattern. */
function plainPattern(written: string): string {
  return written
    .trim()
    .replace(/\/{2,}/g, "/")
    .replace(/^(?:\.?\/)+/, "")
    .replace(/\/$/, "");
}

function patternTest(pattern: string): (path: string) => boolean {
  if (pattern === "" || pattern === ".") return () => true;
  const globs = [createGlob(`/${pattern}`), createGlob(`/${pattern}/**`)].filter((each) => each !== undefined);
  // In some frameworks `[id]` is the name of a folder.
  const asName: Glob = (path) => path === pattern || path.startsWith(`${pattern}/`);
  return (path) => [...globs, asName].some((matches) => matches(path));
}

async function findFiles(written: string, directory: string): Promise<string[]> {
  const pattern = plainPattern(written);
  const names = pattern.split("/");
  const firstWild = names.findIndex((name) => /[*?[\\]/.test(name));
  const start = join(directory, ...names.slice(0, firstWild === -1 ? undefined : firstWild));
  if (start !== directory && !isInside(start, directory)) return [];
  const files = (await listFiles(start)).map((file) => relative(directory, file).split(sep).join("/"));
  return files.filter(patternTest(pattern));
}

/** Lists all files below a path. A path that is not a folder is itself the only file. */
async function listFiles(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => undefined);
  if (entries === undefined) return [path];
  const files: string[] = [];
  for (const entry of entries) {
    if (!entry.isDirectory()) files.push(join(path, entry.name));
    else if (entry.name !== ".git" && entry.name !== "node_modules")
      for (const file of await listFiles(join(path, entry.name))) files.push(file);
  }
  return files;
}

/** Larger files, and files beyond the budget, are compared by size and time. */
const largeFile = 1_000_000;

async function describeContent(path: string, budget: { bytes: number }): Promise<string> {
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
