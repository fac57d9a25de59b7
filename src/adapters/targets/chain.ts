import { readFile } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import type { FileTarget } from "./targets.ts";

/** Texts of the files of the same name in the folders from the target's down to the current one: a tool whose limit is on the chain
 *  reads them all together. */
export async function restOfChain({ path, adapters }: FileTarget, cwd: string): Promise<string[]> {
  if (!adapters.some((adapter) => adapter.limits.some((limit) => limit.scope === "chain"))) return [];
  const below = relative(dirname(path), cwd);
  if (below === "" || below.startsWith("..")) return [];
  const texts: string[] = [];
  let folder = dirname(path);
  for (const name of below.split(sep)) {
    folder = join(folder, name);
    const text = await readFile(join(folder, basename(path)), "utf8").catch(() => "");
    if (text !== "") texts.push(text);
  }
  return texts;
}
