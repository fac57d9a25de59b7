/** Finds signs of what a project is, such as `package.json`, without a walk through its tree. */
import { type Dirent, readdirSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { compareText, createGlob } from "../../core/text/index.ts";
import type { IgnoreRules } from "../../host/index.ts";
import type { ProjectTree } from "./project-tree.ts";

/** Returns, for each list of patterns, the path of the first file that matches, or `undefined`. Looks at files that git
 *  tracks or could track, so a laptop and a CI machine find the same. Looks at most two folders deep, and not into
 *  folders of other people's code, tests, examples or documents: they do not say what the project is. */
export async function findSigns(
  signs: readonly (readonly string[])[],
  tree: ProjectTree,
): Promise<readonly (string | undefined)[]> {
  const tracked = tree.files
    .map(({ path }) => path.slice(tree.root.length + 1).replaceAll(sep, "/"))
    .filter((path) => {
      const folders = path.split("/").slice(0, -1);
      return folders.length <= maxFolders && folders.every(isTellingFolder);
    })
    .sort(shallowFirst);
  const found = signs.map((patterns) => {
    // An earlier pattern wins: it is the clearer sign.
    for (const glob of patterns.map(createGlob)) {
      const path = glob === undefined ? undefined : tracked.find(glob);
      if (path !== undefined) return path;
    }
    return undefined;
  });
  if (!found.includes(undefined)) return found;
  const others = [...untrackedFiles(tree, new Set(tracked))].sort(shallowFirst);
  // Reads the rules of a folder once.
  const known = new Map<string, Promise<IgnoreRules | undefined>>();
  const isIgnored = async (path: string) => {
    const folder = dirname(path);
    const rules = known.get(folder) ?? loadRules(join(tree.root, folder), tree.root);
    known.set(folder, rules);
    return (await rules)?.ignores(join(tree.root, path), "file") ?? true;
  };
  for (const [index, patterns] of signs.entries()) found[index] ??= await firstVisible(patterns, others, isIgnored);
  return found;
}

/** A file below more folders than this says little about the whole project. */
const maxFolders = 2;

const otherPurposes: ReadonlySet<string> = new Set([
  ...["node_modules", "vendor", "third_party", "dist", "build", "venv"],
  ...["test", "tests", "testdata", "fixtures", "__tests__", "__fixtures__"],
  ...["bench", "benchmarks", "example", "examples", "doc", "docs", "scripts", "tools"],
]);

function isTellingFolder(name: string): boolean {
  return !name.startsWith(".") && !otherPurposes.has(name);
}

function shallowFirst(one: string, two: string): number {
  return one.split("/").length - two.split("/").length || compareText(one, two);
}

function untrackedFiles({ root }: ProjectTree, tracked: ReadonlySet<string>): string[] {
  // The search for files that git does not track yet stops after this many folders.
  const maxListed = 500;
  const files: string[] = [];
  const folders = [""];
  for (let index = 0; index < folders.length && index < maxListed; index++) {
    const folder = folders[index]!;
    const below = folder === "" ? "" : `${folder}/`;
    const entries = entriesIn(join(root, folder));
    files.push(...entries.filter((entry) => entry.isFile()).map(({ name }) => below + name));
    if (below.split("/").length > maxFolders) continue;
    const inner = entries.filter((entry) => entry.isDirectory() && isTellingFolder(entry.name));
    folders.push(...inner.map(({ name }) => below + name));
  }
  return files.filter((path) => !tracked.has(path));
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

async function loadRules(folder: string, root: string): Promise<IgnoreRules | undefined> {
  // Few projects need this library.
  const { openRulesBelow } = await import("../../host/files/ignore-rules.ts");
  return openRulesBelow(root, folder);
}
