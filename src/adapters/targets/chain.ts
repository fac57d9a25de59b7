import { basename, dirname, join } from "node:path";
import { exists, readRegularFile, upward } from "../../workspace/index.ts";
import type { FileTarget } from "./targets.ts";

/** Texts of the files of the same name above the target, up to the repository's root: a tool whose limit is on the chain reads them
 *  first. What lies below does not count, or the same block would come out differently in each folder that a person stands in. */
export async function restOfChain({ names, limits }: FileTarget): Promise<string[]> {
  if (!limits.some((limit) => limit.scope === "chain")) return [];
  const files = new Set<string>();
  for (const name of names) for (const file of await filesAbove(name)) files.add(file);
  return readAll([...files]);
}

async function filesAbove(path: string): Promise<string[]> {
  const above: string[] = [];
  for (const folder of upward(dirname(path))) {
    above.push(join(folder, basename(path)));
    if (await exists(join(folder, ".git"))) return above.slice(1);
  }
  return [];
}

async function readAll(files: readonly string[]): Promise<string[]> {
  const read = await Promise.all(files.map((file) => readRegularFile(file)));
  return read.flatMap((file) => (Buffer.isBuffer(file) && file.length > 0 ? [file.toString("utf8")] : []));
}
