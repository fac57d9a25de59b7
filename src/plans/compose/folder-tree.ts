/** A project's file tree as lines, with folders closed until there is room for them. */

import { codeLanguage, printable, toByteString, wellFormed } from "../../core/text/index.ts";

/** The tree of a snapshot. It closes level by level from below, so the entries of the root go last. */
interface TreeView {
  /** The number of steps: first each entry of the root, then each opened folder, level by level, then deeper folders
   *  with code while there is room. */
  readonly steps: number;
  render(steps: number): RenderedTree;
}

export interface RenderedTree {
  readonly lines: readonly string[];
  /** Entries down to `usualDepth` that are not shown, and those that no view shows because the root has too many.
   *  Deeper entries are extra. */
  readonly omitted: number;
  /** A line that says so. */
  readonly marker: string;
}

/** How deep every folder is shown, and how deep folders with code are if there is room. */
const [usualDepth, mostDepth] = [3, 8];

/** A folder with more entries stays closed. */
const mostInFolder = 20;

/** The root is never closed, but it must leave room for other text. Roots of real projects have fewer entries. */
const mostInRoot = 100;

export function createTreeView(paths: readonly string[]): TreeView {
  const root = createFolderTree(paths);
  const shown = entriesOf(root, { depth: 1, most: mostInRoot });
  const { usual, deep } = openedIn(shown);
  const order = new Map([...usual, ...deep].map((entry, index) => [entry, index]));
  const hidden = countEntries(root) - shown.length;
  const total = countEntries(root) + usual.reduce((sum, { children }) => sum + children.length, 0);
  const allUsual = shown.length + usual.length;
  return {
    steps: allUsual + deep.length,
    render: (steps) => {
      const open = steps - shown.length;
      const lines = linesOf(shown.slice(0, steps), "", (entry) => order.get(entry)! < open);
      const omitted = steps >= allUsual ? hidden : total - lines.length;
      return { lines, omitted, marker: `[... truncated, ${entriesText(omitted)} omitted]` };
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

/** Folders first, those with code before those without, documents and folders that start with a dot. */
function entriesOf(folder: Folder, { depth, most }: { depth: number; most: number }): Entry[] {
  const ranked = sortNames(folder.folders.keys()).map((name) => ({ name, rank: rankOf(name, folder) }));
  const folders = ranked.sort((one, two) => one.rank - two.rank).slice(0, most);
  const files = sortNames(folder.files).slice(0, most - folders.length);
  return [
    ...folders.map(({ name }) => folderEntry(name, folder.folders.get(name)!, depth)),
    ...files.map((name) => ({ name: shown(name), count: undefined, children: [] })),
  ];
}

function rankOf(name: string, { folders }: Folder): number {
  if (name.startsWith(".")) return 3;
  if (/^(docs?|documentation)$/i.test(name)) return 2;
  return folders.get(name)!.hasCode ? 0 : 1;
}

function folderEntry(name: string, folder: Folder, depth: number): Entry {
  const count = countEntries(folder);
  const isDeepEnough = depth < usualDepth || (folder.hasCode && depth < mostDepth);
  return {
    name: `${shown(name)}/`,
    count: count === 0 ? undefined : count,
    children: isDeepEnough && count <= mostInFolder ? entriesOf(folder, { depth: depth + 1, most: mostInFolder }) : [],
  };
}

function shown(name: string): string {
  return wellFormed(printable(name));
}

interface OpenedFolders {
  readonly usual: readonly Entry[];
  /** At `usualDepth` and below. */
  readonly deep: readonly Entry[];
}

/** Returns the folders that can be opened, level by level, each parent before its children. */
function openedIn(entries: readonly Entry[]): OpenedFolders {
  const opened: { usual: Entry[]; deep: Entry[] } = { usual: [], deep: [] };
  for (let [level, depth] = [entries, 1]; level.length > 0; level = level.flatMap(({ children }) => children), depth++)
    opened[depth < usualDepth ? "usual" : "deep"].push(...level.filter(({ children }) => children.length > 0));
  return opened;
}

function linesOf(entries: readonly Entry[], indent: string, isOpen: (entry: Entry) => boolean): string[] {
  return entries.flatMap((entry) => {
    if (entry.children.length > 0 && isOpen(entry))
      return [indent + entry.name, ...linesOf(entry.children, `${indent}  `, isOpen)];
    const { name, count } = entry;
    return count === undefined ? indent + name : `${indent}${name} (${entriesText(count)})`;
  });
}

function entriesText(count: number): string {
  return count === 1 ? "1 entry" : `${count} entries`;
}

/** Paths as folders, as deep as a snapshot shows them. */
interface Folder {
  readonly folders: ReadonlyMap<string, Folder>;
  readonly files: readonly string[];
  /** Whether it has code at any depth. */
  readonly hasCode: boolean;
}

/** Builds a tree of paths. A path that ends with a slash is a folder. Folders at `mostDepth` still know their
 *  entries, so that these can be counted; nothing deeper is kept. */
function createFolderTree(paths: readonly string[]): Folder {
  const root = emptyFolder();
  for (const path of paths) addPath(root, path);
  return root;
}

interface GrowingFolder extends Folder {
  readonly folders: Map<string, GrowingFolder>;
  readonly files: string[];
  hasCode: boolean;
}

function emptyFolder(): GrowingFolder {
  return { folders: new Map(), files: [], hasCode: false };
}

/** Stands for folders below `mostDepth`, which are only counted. */
const closed: GrowingFolder = emptyFolder();

function addPath(root: GrowingFolder, path: string): void {
  const isCode = codeLanguage(path) !== undefined;
  let folder = root;
  let start = 0;
  for (let depth = 0; depth <= mostDepth; depth++) {
    if (isCode) folder.hasCode = true;
    const slash = path.indexOf("/", start);
    if (slash === -1) {
      if (start < path.length) folder.files.push(path.slice(start));
      return;
    }
    const name = path.slice(start, slash);
    if (depth === mostDepth) folder.folders.set(name, closed);
    else folder = openFolder(folder, name);
    start = slash + 1;
  }
}

function openFolder({ folders }: GrowingFolder, name: string): GrowingFolder {
  const known = folders.get(name);
  if (known !== undefined) return known;
  const folder = emptyFolder();
  folders.set(name, folder);
  return folder;
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
