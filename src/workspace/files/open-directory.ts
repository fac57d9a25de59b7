import { readdir, realpath } from "node:fs/promises";
import { resolve } from "node:path";
import { ContextError } from "../../errors.ts";
import { systemReason } from "./read-text.ts";

/** The real path of a directory that can be listed. What is wrong with another one is told of the name that was given. */
export async function openDirectory(name: string, cwd = ""): Promise<string> {
  try {
    const path = await realpath(resolve(cwd, name));
    await readdir(path);
    return path;
  } catch (cause) {
    throw new ContextError("unreadable_input", systemReason(cause, reasons), { file: name, cause });
  }
}

const reasons = { ENOENT: "no such directory", ENOTDIR: "is no directory" };
