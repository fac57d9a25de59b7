import { realpath } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { isGitInternal, isInside } from "../../workspace/index.ts";
import { diskName } from "./byte-names.ts";
import { isDenied } from "./denied.ts";

/** Tells of listed files whether their directory lies below the root: git also lists what it tracks in a directory that has become a link
 *  to somewhere else. Rejects where that may not be asked. */
export function createContainedDirectories(root: string): (path: string) => Promise<boolean> {
  const known = new Map<string, Promise<boolean>>();
  const realRoot = realBytes(root);
  // A rejection is told by each question.
  realRoot.catch(() => {});
  const look = async (directory: string): Promise<boolean> => {
    const [real, around] = [await realBytes(join(root, directory)), await realRoot];
    return isInside(real, around) && !isGitInternal(relative(around, real));
  };
  return (path) => {
    const directory = dirname(path);
    const answer = known.get(directory) ?? look(directory).catch(outsideUnlessDenied);
    known.set(directory, answer);
    return answer;
  };
}

function outsideUnlessDenied(error: unknown): boolean {
  if (isDenied(error)) throw error;
  return false;
}

/** Where a directory really lies, as a byte string: its name need not be UTF-8. */
async function realBytes(directory: string): Promise<string> {
  return (await realpath(diskName(directory), "buffer")).toString("latin1");
}
