import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";
import type { Environment } from "../directories.ts";

/** The program that PATH names, as an absolute path. Relative entries are left out, and nothing is looked up in the working
 *  directory as Windows would: a tree that is read must not bring the program that reads it. */
export async function findProgram(name: string, env: Environment): Promise<string | undefined> {
  for (const directory of directoriesOf(env)) {
    for (const ending of process.platform === "win32" ? [".exe"] : [""]) {
      const path = join(directory, name + ending);
      if (await isProgram(path)) return path;
    }
  }
  return undefined;
}

function directoriesOf(env: Environment): string[] {
  // Windows writes it Path.
  const path = env.PATH ?? env.Path ?? "";
  return path.split(delimiter).filter(isAbsolute);
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}
