import { readdir, realpath } from "node:fs/promises";
import { resolve } from "node:path";
import { ContextError } from "../../errors.ts";

/** The real path of a directory that can be listed. What is wrong with another one is told of the name that was given. */
export async function openDirectory(name: string, cwd = ""): Promise<string> {
  try {
    const path = await realpath(resolve(cwd, name));
    await readdir(path);
    return path;
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? "";
    throw new ContextError("unreadable_input", reasons[code] ?? `cannot be read (${code})`, {
      file: name,
      cause,
    });
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "no such directory",
  ENOTDIR: "is no directory",
  EACCES: "no permission to read it",
  ELOOP: "its symbolic links lead in a circle",
};
