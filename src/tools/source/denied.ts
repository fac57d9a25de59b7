/** What the system does not let us read. It is there: neither gone nor empty. */
import { numbered } from "../frame/phrases.ts";

export function isDenied(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return code === "EACCES" || code === "EPERM";
}

/** Directories that git could not open: it goes on without them, and ends as if all were well. */
export function deniedByGit(stderr: string): number {
  return stderr.match(/^warning: could not open directory /gm)?.length ?? 0;
}

/** Undefined where every directory was read. */
export function deniedWarning(directories: number): string | undefined {
  if (directories === 0) return undefined;
  const which = numbered(directories, ["directory", "directories"]);
  return `${which} could not be read: what is in ${directories === 1 ? "it" : "them"} may be missing here.`;
}
