/** What an agent loads by itself must not be in its prompt a second time. */
import type { ConventionsFile, ProjectScan } from "../../host/index.ts";

export interface KnownConventions {
  readonly scan: ProjectScan;
  /** The files that were left out. */
  readonly leftOut: readonly string[];
}

/** Replaces the conventions that an agent loads by itself with one line that names them. Returns the same scan if there
 *  are none. */
export function leaveOutConventions(
  scan: ProjectScan,
  loadsItself: (file: ConventionsFile) => boolean = () => false,
): KnownConventions {
  const leftOut = scan.conventions.filter(loadsItself).map(({ path }) => path);
  if (leftOut.length === 0) return { scan, leftOut };
  const line = { path: leftOut.join(", "), text: "Not repeated here: you load this by yourself." };
  const others = scan.conventions.filter((file) => !loadsItself(file));
  return { scan: { ...scan, conventions: [line, ...others] }, leftOut };
}
