import { realpath } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { diskName } from "./byte-names.ts";

/** Tells of listed files whether their directory lies below the root: git also lists what it tracks in a directory that has become a link
 *  to somewhere else. */
export function createContainedDirectories(root: string): (path: string) => Promise<boolean> {
  const known = new Map<string, Promise<boolean>>();
  const realRoot = realpath(root, "buffer").then(byteString);
  // A rejection is told by each question.
  realRoot.catch(() => {});
  const look = async (directory: string): Promise<boolean> => {
    const real = byteString(await realpath(diskName(join(root, directory)), "buffer"));
    const below = `${await realRoot}${sep}`;
    return `${real}${sep}`.startsWith(below) && !isGitInternal(real.slice(below.length));
  };
  return (path) => {
    const directory = dirname(path);
    const answer = known.get(directory) ?? look(directory).catch(() => false);
    known.set(directory, answer);
    return answer;
  };
}

function byteString(name: Buffer): string {
  return name.toString("latin1");
}

function isGitInternal(path: string): boolean {
  return path.split(sep).some((name) => name.toLowerCase() === ".git");
}
