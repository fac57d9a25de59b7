/** Which entries install wrote, so that uninstall takes out no other: a person may have written the very same one. Kept beside the store,
 *  as the files themselves have no place for a mark that every tool would ignore. */
import { readFile, realpath } from "node:fs/promises";
import { join, relative } from "node:path";
import { changeFile, type Environment, stateDirectory } from "../../workspace/index.ts";

export interface WrittenEntries {
  has(id: string): boolean;
  add(ids: readonly string[]): Promise<void>;
  remove(ids: readonly string[]): Promise<void>;
}

/** The same whichever way one came to the root. */
export async function entryId(path: string, key: string, root: string): Promise<string> {
  const real = await realpath(root).catch(() => root);
  return JSON.stringify([join(real, relative(root, path)), key]);
}

export async function readWrittenEntries(env: Environment): Promise<WrittenEntries> {
  const folder = stateDirectory(env);
  const path = join(folder, "mcp-entries.json");
  const known = new Set(parse(await readFile(path, "utf8").catch(() => undefined)));
  const change = async (ids: readonly string[], edit: (all: string[]) => string[]): Promise<void> => {
    if (ids.length === 0) return;
    await changeFile(path, {
      root: folder,
      env,
      isPrivate: true,
      // Contents are byte strings.
      change: (current) => {
        const before = current === undefined ? undefined : Buffer.from(current, "latin1").toString("utf8");
        const after = edit(parse(before));
        const text = after.length === 0 ? undefined : `${JSON.stringify(after, null, 2)}\n`;
        return text && Buffer.from(text, "utf8").toString("latin1");
      },
    });
  };
  return {
    has: (id) => known.has(id),
    add: (ids) => change(ids, (all) => [...new Set([...all, ...ids])].sort()),
    remove: (ids) => change(ids, (all) => all.filter((id) => !ids.includes(id))),
  };
}

/** What cannot be read tells nothing: then no entry is known to be ours. */
function parse(text: string | undefined): string[] {
  try {
    const value: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
  } catch {
    return [];
  }
}
