/** Which files the chosen adapters write, each file once. */
import { isAbsolute, join, resolve } from "node:path";
import { followLinks } from "../../workspace/index.ts";
import type { Adapter, AdapterTarget, Scope, ToolLimit } from "../adapter.ts";

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
  /** All names that it has: a link's own name is in another chain of files. */
  readonly names: readonly string[];
  /** With its links resolved. */
  readonly realPath: string;
  readonly target: AdapterTarget;
  readonly adapters: readonly Adapter[];
  /** Of these adapters, and on the whole file of those that keep another section in it. */
  readonly limits: readonly ToolLimit[];
}

/** Adapters that name the same section of the same file share one target, also where one name is a link to the other. */
export async function fileTargets(adapters: readonly Adapter[], places: Places): Promise<FileTarget[]> {
  const byKey = new Map<string, Omit<FileTarget, "limits"> & { adapters: Adapter[]; names: string[] }>();
  const files = adapters.filter(({ type }) => type === "file-inject");
  // By id, so that the order in which tools were named changes nothing.
  for (const adapter of files.sort((a, b) => (a.id < b.id ? -1 : 1))) {
    for (const target of adapter.targets.filter(({ scope }) => scope === places.scope)) {
      const path = resolveTargetPath(target.path, places);
      // A circle of links stays itself: writing it is refused later, with the reason.
      const realPath = await followLinks(path).catch(() => path);
      const key = JSON.stringify([realPath, target.mode === "replace-file" ? null : target.section]);
      const known = byKey.get(key);
      if (known === undefined) byKey.set(key, { path, names: [path], realPath, target, adapters: [adapter] });
      else {
        known.names.push(path);
        if (!known.adapters.includes(adapter)) known.adapters.push(adapter);
      }
    }
  }
  const targets = [...byKey.values()];
  return targets.map((target) => ({ ...target, limits: limitsOf(target, targets) }));
}

function limitsOf(
  target: Omit<FileTarget, "limits">,
  targets: readonly Omit<FileTarget, "limits">[],
): ToolLimit[] {
  const sharing = targets.filter(({ realPath }) => realPath === target.realPath);
  const owners = new Set(sharing.flatMap(({ adapters }) => adapters));
  return [...owners].flatMap((adapter) =>
    adapter.limits.filter(({ scope }) => scope !== "field" || target.adapters.includes(adapter)),
  );
}

/** Where a `file-export` adapter keeps the whole text. */
export function exportTarget(adapter: Adapter, places: Places): FileTarget | undefined {
  const { type, exportPath } = adapter;
  if (type !== "file-export" || exportPath === undefined || places.scope !== "global") return undefined;
  const path = resolveTargetPath(exportPath, places);
  const target = { scope: "global", path: exportPath, mode: "replace-file", section: "context" } as const;
  return { path, names: [path], realPath: path, target, adapters: [adapter], limits: [] };
}

export function resolveTargetPath(path: string, { root, home }: Places): string {
  if (path === "~" || path.startsWith("~/")) return join(home, path.slice(2));
  return isAbsolute(path) ? path : resolve(root, path);
}
