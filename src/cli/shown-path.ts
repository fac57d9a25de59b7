import { relative } from "node:path";
import { type Environment, homeDirectory, isInside, projectRoot } from "../workspace/index.ts";

/** What a path means to the person who typed the command: in the project as seen from where they are, else below HOME. */
export function shownPath(path: string, cwd: string, env: Environment): string {
  const home = homeDirectory(env);
  const below = relative(cwd, path);
  if (isInside(path, cwd) || path.startsWith(`${projectRoot(cwd, home)}/`)) return below;
  return path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : below;
}
