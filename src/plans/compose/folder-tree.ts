/** A project's file tree as lines, with folders closed until there is room for them. */

import { codeLanguage, printable, toByteString, wellFormed } from "../../core/text/index.ts";

export interface RenderedTree {
  readonly lines: readonly string[];
  /** Entries down to `usualDepth` that are not shown, and those that are never shown because the root has too many.
   *  Deeper entries do not count. */
  readonly omitted: number;
  /** A line that says how many entries are omitted. */
  readonly marker: string;
}

/** How deep every folder is shown, and how deep folders with code are if there is room. */
const [usualDepth, maxDepth] = [3, 8];

/** A folder with more entries stays closed. */
const maxInFolder = 20;

/** Creates the tree of a snapshot. Each step shows more of it: first one entry of the root, then the content of one
 *  folder, level by level, then deeper folders with code. */
export function createTreeView(paths: readonly string[]): {
  readonly steps: number;
  render(steps: number): RenderedTree;
} {
  const root = emptyFolder();
  for (const path of paths) addPath(root, path);
  // The root is never closed, but it must leave room for other text. Roots of real projects have fewer entries.
  const entries = listEntries(root, { depth: 1, maxEntries: 100 });
  // The folders that can be opened, level by level, each parent before its children.
  const usual: Entry[] = [];
  const deep: Entry[] = [];
  for (let [level, depth] = [entries, 1]; level.length > 0; level = level.flatMap(({ children }) => children), depth++)
    (depth < usualDepth ? usual : deep).push(...level.filter(({ children }) => children.length > 0));
  const order = new Map([...usual, ...deep].map((entry, index) => [entry, index]));
  const neverShown = countEntries(root) - entries.length;
  const total = countEntries(root) + usual.reduce((sum, { children }) => sum + children.length, 0);
  const allUsual = entries.length + usual.length;
  return {
    steps: allUsual + deep.length,
    render: (steps) => {
      const open = steps - entries.length;
      const lines = renderEntries(entries.slice(0, steps), "", (entry) => order.get(entry)! < open);
      const omitted = steps >= allUsual ? neverShown : total - lines.length;
      return { lines, omitted, marker: `[... truncated, ${describeCount(omitted)} omitted]` };
    },
  };
}

interface Entry {
  readonly name: string;
  /** Its number of entries; undefined for a file, and for a folder whose content is unknown. */
  readonly count: number | undefined;
  /** Empty unless it can be opened. */
  readonly children: readonly Entry[];
}

/** Lists folders before files: those with code, other folders, documents, then folders that start with a dot. */
function listEntries(folder: Folder, { depth, maxEntries }: { depth: number; maxEntries: number }): Entry[] {
  const rank = (name: string): number => {
    if (name.startsWith(".")) return 3;
    if (/^(docs?|documentation)$/i.test(name)) return 2;
    return folder.folders.get(name)!.hasCode ? 0 : 1;
  };
  const ranked = sortNames(folder.folders.keys()).map((name) => ({ name, rank: rank(name) }));
  const folders = ranked.sort((one, two) => one.rank - two.rank).slice(0, maxEntries);
  const files = sortNames(folder.files).slice(0, maxEntries - folders.length);
  const render = (name: string) => wellFormed(printable(name));
  return [
    ...folders.map(({ name }) => {
      const inside = folder.folders.get(name)!;
      const count = countEntries(inside);
      const isDeepEnough = depth < usualDepth || (inside.hasCode && depth < maxDepth);
      const canOpen = isDeepEnough && count <= maxInFolder;
      return {
        name: `${render(name)}/`,
        count: count === 0 ? undefined : count,
        children: canOpen ? listEntries(inside, { depth: depth + 1, maxEntries: maxInFolder }) : [],
      };
    }),
    ...files.map((name) => ({ name: render(name), count: undefined, children: [] })),
  ];
}

function renderEntries(entries: readonly Entry[], indent: string, isOpen: (entry: Entry) => boolean): string[] {
  return entries.flatMap((entry) => {
    if (entry.children.length > 0 && isOpen(entry))
      return [indent + entry.name, ...renderEntries(entry.children, `${indent}  `, isOpen)];
    const { name, count } = entry;
    return count === undefined ? indent + name : `${indent}${name} (${describeCount(count)})`;
  });
}

function describeCount(entries: number): string {
  return entries === 1 ? "1 entry" : `${entries} entries`;
}

/** Paths as folders, as deep as a snapshot shows them. */
interface Folder {
  readonly folders: Map<string, Folder>;
  readonly files: string[];
  /** Whether it has code at any depth. */
  hasCode: boolean;
}

function emptyFolder(): Folder {
  return { folders: new Map(), files: [], hasCode: false };
}

/** Used for all folders below `maxDepth`, which are only counted. */
const closed: Folder = emptyFolder();

/** Adds a path to a tree. A path that ends with a slash is a folder. Folders at `maxDepth` still know their entries, so
 *  that these can be counted; nothing deeper is kept. */
function addPath(root: Folder, path: string): void {
  const isCode = codeLanguage(path) !== undefined;
  let folder = root;
  let start = 0;
  for (let depth = 0; depth <= maxDepth; depth++) {
    if (isCode) folder.hasCode = true;
    const slash = path.indexOf("/", start);
    if (slash === -1) {
      if (start < path.length) folder.files.push(path.slice(start));
      return;
    }
    const name = path.slice(start, slash);
    if (depth === maxDepth) folder.folders.set(name, closed);
    else {
      const inside = folder.folders.get(name) ?? emptyFolder();
      folder.folders.set(name, inside);
      folder = inside;
    }
    start = slash + 1;
  }
}

function countEntries({ folders, files }: Folder): number {
  return folders.size + files.length;
}

/** Sorts by UTF-8 bytes, as git does, independent of the locale. */
function sortNames(names: Iterable<string>): string[] {
  const keyed = Array.from(names, (name) => ({ name, bytes: toByteString(name) }));
  keyed.sort((a, b) => (a.bytes < b.bytes ? -1 : a.bytes > b.bytes ? 1 : 0));
  return keyed.map(({ name }) => name);
}
