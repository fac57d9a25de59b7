import { readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { exists, upward } from "../../workspace/index.ts";
import type { FileTarget } from "./targets.ts";

/** Texts of the files of the same name above the target, up to the repository's root: a tool whose limit is on the chain reads them
 *  first. What lies below does not count, or the same block would come out differently in each folder that a person stands in. */
export async function restOfChain({ path, limits }: FileTarget): Promise<string[]> {
  if (!limits.some((limit) => limit.scope === "chain")) return [];
  const above: string[] = [];
  for (const folder of upward(dirname(path))) {
    above.push(folder);
    if (await exists(join(folder, ".git"))) return readAll(above.slice(1), basename(path));
  }
  return [];
}

async function readAll(folders: readonly string[], name: string): Promise<string[]> {
  const texts = await Promise.all(
    folders.map((folder) => readFile(join(folder, name), "utf8").catch(() => "")),
  );
  return texts.filter((text) => text !== "");
}
