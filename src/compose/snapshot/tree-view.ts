/** The tree of a snapshot, and how it gives way: level by level from below, so that the last thing to go is what lies in the root. */
import { printable, wellFormed } from "../../text/index.ts";
import { countEntries, createFolderTree, type Folder, sortNames } from "./folder-tree.ts";

export interface TreeView {
  /** How many steps there are: first each entry of the root, then each folder that is opened, level by level. */
  readonly steps: number;
  render(steps: number): RenderedTree;
}

export interface RenderedTree {
  readonly lines: readonly string[];
  /** Entries that a view with all its steps would show, and those that no view shows because the root has too many. */
  readonly omitted: number;
}

const maxDepth = 3;
/** A folder with more stays closed. */
const mostInFolder = 20;
/** The root is never closed, but must not be all that a reader gets: roots of real projects stay below. */
const mostInRoot = 100;

export function createTreeView(paths: readonly string[]): TreeView {
  const root = createFolderTree(paths, maxDepth);
  const shown = entriesOf(root, { depth: 1, most: mostInRoot });
  const opened = openedIn(shown);
  const order = new Map(opened.map((entry, index) => [entry, index]));
  const total = countEntries(root) + opened.reduce((sum, { children }) => sum + children.length, 0);
  return {
    steps: shown.length + opened.length,
    render: (steps) => {
      const open = steps - shown.length;
      const lines = linesOf(shown.slice(0, steps), "", (entry) => order.get(entry)! < open);
      return { lines, omitted: total - lines.length };
    },
  };
}

interface Entry {
  readonly name: string;
  /** How many entries it has itself; undefined for a file, and for a folder of which no more is known. */
  readonly count: number | undefined;
  /** Empty unless it can be opened. */
  readonly children: readonly Entry[];
}

/** Folders first. */
function entriesOf(folder: Folder, { depth, most }: { depth: number; most: number }): Entry[] {
  const folders = sortNames(folder.folders.keys()).slice(0, most);
  const files = sortNames(folder.files).slice(0, most - folders.length);
  return [
    ...folders.map((name) => folderEntry(name, folder.folders.get(name)!, depth)),
    ...files.map((name) => ({ name: shown(name), count: undefined, children: [] })),
  ];
}

function folderEntry(name: string, folder: Folder, depth: number): Entry {
  const count = countEntries(folder);
  const opens = depth < maxDepth && count <= mostInFolder;
  return {
    name: `${shown(name)}/`,
    count: count === 0 ? undefined : count,
    children: opens ? entriesOf(folder, { depth: depth + 1, most: mostInFolder }) : [],
  };
}

function shown(name: string): string {
  return wellFormed(printable(name));
}

/** Level by level. A parent comes before its children, so none is open in a closed one. */
function openedIn(entries: readonly Entry[]): Entry[] {
  const opened: Entry[] = [];
  for (let level = entries; level.length > 0; level = level.flatMap(({ children }) => children))
    opened.push(...level.filter(({ children }) => children.length > 0));
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

export function entriesText(count: number): string {
  return count === 1 ? "1 entry" : `${count} entries`;
}
