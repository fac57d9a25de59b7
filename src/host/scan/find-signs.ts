/** Finds signs of what a project is, such as `package.json`, without a walk through its tree. */
import { type Dirent, readdirSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { compareText, createGlob } from "../../core/text/index.ts";
import type { IgnoreRules } from "../files/ignore-rules.ts";
import type { ProjectTree } from "../files/project-tree.ts";

/** Returns, for each list of patterns, the path of the first file that matches, or `undefined`. Looks at files that git
 *  tracks or could track, so a laptop and a CI machine find the same. Looks at most two folders deep, and not into
 *  folders of other people's code, tests, examples or documents: they do not say what the project is. */
export async function findSigns(
  signs: readonly (readonly string[])[],
  tree: ProjectTree,
): Promise<readonly (string | undefined)[]> {
  const tracked = tree.files
    .map(({ path }) => path.slice(tree.root.length + 1).replaceAll(sep, "/"))
    .filter(isTelling)
    .sort(shallowFirst);
  const found = signs.map((patterns) => firstMatch(patterns, tracked));
  if (!found.includes(undefined)) return found;
  const others = [...untrackedFiles(tree, new Set(tracked))].sort(shallowFirst);
  const isIgnored = ignoredBelow(tree.root);
  for (const [index, patterns] of signs.entries()) found[index] ??= await firstVisible(patterns, others, isIgnored);
  return found;
}

/** A file below more folders than this says little about the whole project. */
const mostFolders = 2;

const otherPurposes: ReadonlySet<string> = new Set([
  ...["node_modules", "vendor", "third_party", "dist", "build", "venv"],
  ...["test", "tests", "testdata", "fixtures", "__tests__", "__fixtures__"],
  ...["bench", "benchmarks", "example", "examples", "doc", "docs", "scripts", "tools"],
]);

function isTelling(path: string): boolean {
  const folders = path.split("/").slice(0, -1);
  return folders.length <= mostFolders && folders.every(isTellingFolder);
}

function isTellingFolder(name: string): boolean {
  return !name.startsWith(".") && !otherPurposes.has(name);
}

function shallowFirst(one: string, two: string): number {
  return one.split("/").length - two.split("/").length || compareText(one, two);
}

/** An earlier pattern wins: it is the clearer sign. */
function firstMatch(patterns: readonly string[], paths: readonly string[]): string | undefined {
  for (const glob of patterns.map(createGlob)) {
    const path = glob === undefined ? undefined : paths.find(glob);
    if (path !== undefined) return path;
  }
  return undefined;
}

/** The search for files that git does not track yet stops after this many folders. */
const mostListed = 500;

function untrackedFiles({ root }: ProjectTree, tracked: ReadonlySet<string>): string[] {
  const files: string[] = [];
  const folders = [""];
  for (let index = 0; index < folders.length && index < mostListed; index++) {
    const folder = folders[index]!;
    const below = folder === "" ? "" : `${folder}/`;
    const entries = entriesIn(join(root, folder));
    files.push(...filesOf(entries).map((name) => below + name));
    if (below.split("/").length > mostFolders) continue;
    const inner = entries.filter((entry) => entry.isDirectory() && isTellingFolder(entry.name));
    folders.push(...inner.map(({ name }) => below + name));
  }
  return files.filter((path) => !tracked.has(path));
}

function filesOf(entries: readonly Dirent[]): string[] {
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

/** Sorted by name, because the order on the disk differs between machines. */
function entriesIn(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).sort((a, b) => compareText(a.name, b.name));
  } catch {
    return [];
  }
}

/** Returns the first match that git does not ignore: an ignored file is on this machine only. */
async function firstVisible(
  patterns: readonly string[],
  paths: readonly string[],
  isIgnored: (path: string) => Promise<boolean>,
): Promise<string | undefined> {
  for (const glob of patterns.map(createGlob)) {
    for (const path of glob === undefined ? [] : paths.filter(glob)) if (!(await isIgnored(path))) return path;
  }
  return undefined;
}

/** Reads the rules of a folder once. */
function ignoredBelow(root: string): (path: string) => Promise<boolean> {
  const known = new Map<string, Promise<IgnoreRules | undefined>>();
  return async (path) => {
    const folder = dirname(path);
    const rules = known.get(folder) ?? rulesOf(join(root, folder), root);
    known.set(folder, rules);
    return (await rules)?.ignores(join(root, path), "file") ?? true;
  };
}

async function rulesOf(folder: string, root: string): Promise<IgnoreRules | undefined> {
  // Few projects need this library.
  const { openRulesBelow } = await import("../files/ignore-rules.ts");
  return openRulesBelow(root, folder);
}
