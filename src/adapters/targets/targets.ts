/** Which files the chosen adapters write, each file once. */
import { isAbsolute, join, resolve } from "node:path";
import { followLinks } from "../../workspace/index.ts";
import type { Adapter, AdapterTarget, Scope, ToolLimit } from "../adapter.ts";
import { isLimitOn } from "../audit/audit-files.ts";

/** Where paths of targets begin. */
export interface Places {
  readonly scope: Scope;
  /** The project's root; with the global scope the home directory. Nothing outside it is written. */
  readonly root: string;
  readonly home: string;
}

/** One file, with every adapter that wants a text there. It gets one text, whatever sections the adapters name. */
export interface FileTarget {
  /** As the first adapter names it, absolute. */
  readonly path: string;
  /** All names that it has: a link's own name is in another chain of files. */
  readonly names: readonly string[];
  /** With its links resolved. */
  readonly realPath: string;
  /** That of the first adapter. */
  readonly target: AdapterTarget;
  /** Those whose file it is, then those that read it instead of a file of their own. */
  readonly adapters: readonly Adapter[];
  /** What the tools of these adapters take of this file. */
  readonly limits: readonly ToolLimit[];
}

/** The files of these adapters, each once, also where one name is a link to the other. `ownFiles` are ids of tools that keep a file of
 *  their own though they read another one of these files. */
export async function fileTargets(
  adapters: readonly Adapter[],
  places: Places,
  ownFiles: readonly string[],
): Promise<FileTarget[]> {
  const byPath = new Map<string, Omit<FileTarget, "limits"> & { adapters: Adapter[]; names: string[] }>();
  // By id, so that the order in which tools were named changes nothing.
  const sorted = [...adapters].sort((a, b) => (a.id < b.id ? -1 : 1));
  const readers = readersOf(sorted, places.scope, ownFiles);
  const owners = sorted.filter((each) => !readers.has(each));
  for (const { adapter, target } of targetsOf(owners, places.scope)) {
    const path = resolveTargetPath(target.path, places);
    // A circle of links stays itself: writing it is refused later, with the reason.
    const realPath = await followLinks(path).catch(() => path);
    const known = byPath.get(realPath) ?? { path, names: [], realPath, target, adapters: [] };
    known.names.push(path);
    if (!known.adapters.includes(adapter)) known.adapters.push(adapter);
    byPath.set(realPath, known);
  }
  const targets = [...byPath.values()];
  for (const [reader, owner] of readers)
    for (const target of targets) if (target.adapters.includes(owner)) target.adapters.push(reader);
  return targets.map((target) => ({ ...target, limits: limitsOf(target, readers) }));
}

/** Every target of a scope, as each adapter states it. */
export function targetsOf(
  adapters: readonly Adapter[],
  scope: Scope,
): { readonly adapter: Adapter; readonly target: AdapterTarget }[] {
  return adapters
    .filter(({ type }) => type === "file-inject")
    .flatMap((adapter) =>
      adapter.targets.filter((target) => target.scope === scope).map((target) => ({ adapter, target })),
    );
}

/** The adapters whose tool reads the file of another one, with that one. A text in a file of its own too would be loaded twice. What
 *  `reads` says is about projects: under HOME these tools read their own files only. */
function readersOf(
  adapters: readonly Adapter[],
  scope: Scope,
  ownFiles: readonly string[],
): ReadonlyMap<Adapter, Adapter> {
  const readers = new Map<Adapter, Adapter>();
  if (scope === "global") return readers;
  const hasFile = (adapter: Adapter) => targetsOf([adapter], scope).length > 0;
  for (const adapter of adapters) {
    const owner = adapters.find(
      (other) =>
        other !== adapter && other.reads.includes(adapter.id) && hasFile(other) && !readers.has(other),
    );
    if (owner !== undefined && hasFile(adapter) && !ownFiles.includes(adapter.id))
      readers.set(adapter, owner);
  }
  return readers;
}

function limitsOf(
  { adapters, path }: Pick<FileTarget, "adapters" | "path">,
  readers: ReadonlyMap<Adapter, Adapter>,
): ToolLimit[] {
  return adapters.flatMap((adapter) =>
    adapter.limits.filter(
      (limit) => isLimitOn(path, limit, adapter.id) && !(limit.scope === "field" && readers.has(adapter)),
    ),
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
