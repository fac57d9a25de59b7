/** Paths as folders, as deep as a snapshot looks. */
import { toByteString } from "../../text/index.ts";

export interface Folder {
  readonly folders: ReadonlyMap<string, Folder>;
  readonly files: readonly string[];
}

/** Each path is a file, or with a slash at its end a folder. The folders at `maxDepth` still know their entries, so that these can be
 *  counted; nothing below is kept. */
export function createFolderTree(paths: readonly string[], maxDepth: number): Folder {
  const root = emptyFolder();
  for (const path of paths) addPath(root, path, maxDepth);
  return root;
}

interface GrowingFolder extends Folder {
  readonly folders: Map<string, GrowingFolder>;
  readonly files: string[];
}

function emptyFolder(): GrowingFolder {
  return { folders: new Map(), files: [] };
}

/** Below `maxDepth` a folder is only counted. */
const closed: GrowingFolder = emptyFolder();

function addPath(root: GrowingFolder, path: string, maxDepth: number): void {
  let folder = root;
  let start = 0;
  for (let depth = 0; depth <= maxDepth; depth++) {
    const slash = path.indexOf("/", start);
    if (slash === -1) {
      if (start < path.length) folder.files.push(path.slice(start));
      return;
    }
    const name = path.slice(start, slash);
    if (depth === maxDepth) folder.folders.set(name, closed);
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

export function countEntries({ folders, files }: Folder): number {
  return folders.size + files.length;
}

/** By their UTF-8 bytes, as git sorts: no locale takes part. */
export function sortNames(names: Iterable<string>): string[] {
  const keyed = Array.from(names, (name) => ({ name, bytes: toByteString(name) }));
  keyed.sort((a, b) => (a.bytes < b.bytes ? -1 : a.bytes > b.bytes ? 1 : 0));
  return keyed.map(({ name }) => name);
}
