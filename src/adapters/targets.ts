/** Which files the chosen adapters write, each file once. */
import { realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import type { Adapter, AdapterTarget, Scope } from "./adapter.ts";

/** Where paths of targets begin. */
export interface Places {
  readonly scope: Scope;
  /** The project's root; with the global scope the home directory. Nothing outside it is written. */
  readonly root: string;
  readonly home: string;
}

/** One block or one whole file, with every adapter that wants it there. */
export interface FileTarget {
  /** As the first adapter names it, absolute. */
  readonly path: string;
  /** With its links resolved. */
  readonly realPath: string;
  readonly target: AdapterTarget;
  readonly adapters: readonly Adapter[];
}

/** Adapters that name the same section of the same file share one target, also where one name is a link to the other. */
export async function fileTargets(adapters: readonly Adapter[], places: Places): Promise<FileTarget[]> {
  const byKey = new Map<string, FileTarget & { adapters: Adapter[] }>();
  for (const adapter of adapters) {
    for (const target of adapter.targets) {
      if (adapter.type !== "file-inject" || target.scope !== places.scope) continue;
      const path = resolveTargetPath(target.path, places);
      const realPath = await resolveLinks(path);
      const key = JSON.stringify([realPath, target.mode === "replace-file" ? null : target.section]);
      const known = byKey.get(key);
      if (known === undefined) byKey.set(key, { path, realPath, target, adapters: [adapter] });
      else if (!known.adapters.includes(adapter)) known.adapters.push(adapter);
    }
  }
  return [...byKey.values()];
}

export function resolveTargetPath(path: string, { root, home }: Places): string {
  if (path === "~" || path.startsWith("~/")) return join(home, path.slice(2));
  return isAbsolute(path) ? path : resolve(root, path);
}

/** The real path of a file, or of its nearest folder that exists with the rest behind it. A link that leads nowhere stays itself:
 *  writing it is refused later, with a reason. */
async function resolveLinks(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(await resolveLinks(parent), basename(path));
  }
}
