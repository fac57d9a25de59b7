import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { upward } from "./files/upward.ts";

/** The root of the project around a folder: the nearest one up to `home` with a `.plimsoll` folder or a repository in it, else the folder itself. */
export function projectRoot(cwd: string, home: string): string {
  for (const current of upward(cwd, home)) {
    if (existsSync(join(current, ".plimsoll")) || existsSync(join(current, ".git"))) return current;
  }
  return resolve(cwd);
}
