/** Lists the files that the chosen adapters write, each file once. */
import { dirname, isAbsolute, join, resolve } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { fromByteString, importedNames, toByteString } from "../../core/text/index.ts";
import {
  type AttemptedChange,
  type AttemptOptions,
  attemptChange,
  followLinks,
  isInside,
  keepCopy,
  readForeignBytes,
} from "../../host/index.ts";
import { markedBlock, readOwnership, renderOwnedFile } from "../files/marked-block.ts";
import { isLimitOn } from "../load-model/tool-files.ts";
import type { Adapter, AdapterTarget, Scope, ToolLimit } from "./adapter.ts";

/** The folders that paths of targets start from. */
export interface Places {
  readonly scope: Scope;
  /** The project's root. In the global scope it is the home directory. Nothing outside it is written. */
  readonly root: string;
  readonly home: string;
}

/** One file, with every adapter that writes to it. It gets one text, whatever sections the adapters name. */
export interface FileTarget {
  /** The absolute path, as the first adapter names it. */
  readonly path: string;
  /** All names of the file: a link belongs to another chain of files. */
  readonly names: readonly string[];
  /** The path with links resolved. */
  readonly realPath: string;
  /** The target of the first adapter. */
  readonly target: AdapterTarget;
  /** The adapters that own the file, then the adapters that read it instead of their own file. */
  readonly adapters: readonly Adapter[];
  /** The limits of these adapters' tools on this file. */
  readonly limits: readonly ToolLimit[];
}

/** Returns the files of these adapters, each once, even if one name is a link to another. `ownFiles` are ids of tools
 *  that keep their own file although they read another of these files. */
export async function fileTargets(
  adapters: readonly Adapter[],
  places: Places,
  ownFiles: readonly string[],
): Promise<FileTarget[]> {
  const byPath = new Map<string, Omit<FileTarget, "limits"> & { adapters: Adapter[]; names: string[] }>();
  // Sorted by id, so the order in which tools were named does not matter.
  const sorted = [...adapters].sort((a, b) => (a.id < b.id ? -1 : 1));
  const readers = findReaders(sorted, places.scope, ownFiles);
  const owners = sorted.filter((each) => !readers.has(each));
  for (const { adapter, target } of listTargets(owners, places.scope)) {
    const path = resolveTargetPath(target.path, places);
    // A circle of links keeps its path. Writing it is refused later, with the reason.
    const realPath = await followLinks(path).catch(() => path);
    const known = byPath.get(realPath) ?? { path, names: [], realPath, target, adapters: [] };
    known.names.push(path);
    if (!known.adapters.includes(adapter)) known.adapters.push(adapter);
    byPath.set(realPath, known);
  }
  const targets = [...byPath.values()];
  for (const [reader, owner] of readers)
    for (const target of targets) if (target.adapters.includes(owner)) target.adapters.push(reader);
  return targets.map((target) => ({ ...target, limits: listLimits(target, (adapter) => readers.has(adapter)) }));
}

/** Returns the target with adapters whose tools read it instead of a file of their own. */
export function withReaders(target: FileTarget, readers: readonly Adapter[]): FileTarget {
  const adapters = [...target.adapters, ...readers.filter((each) => !target.adapters.includes(each))];
  return { ...target, adapters, limits: listLimits({ ...target, adapters }, (adapter) => readers.includes(adapter)) };
}

/** The limit of a field is about the tool's own file. */
function listLimits(
  { adapters, path }: Pick<FileTarget, "adapters" | "path">,
  isReader: (adapter: Adapter) => boolean,
): ToolLimit[] {
  return adapters.flatMap((adapter) =>
    adapter.limits.filter(
      (limit) => isLimitOn(path, limit, adapter.id) && !(limit.scope === "field" && isReader(adapter)),
    ),
  );
}

/** Returns every target of a scope, as each adapter lists it. */
export function listTargets(
  adapters: readonly Adapter[],
  scope: Scope,
): { readonly adapter: Adapter; readonly target: AdapterTarget }[] {
  return adapters
    .filter(({ type }) => type === "file-inject")
    .flatMap((adapter) =>
      adapter.targets.filter((target) => target.scope === scope).map((target) => ({ adapter, target })),
    );
}

/** Maps each adapter whose tool reads another adapter's file to that adapter. Its own file would make the tool load the
 *  text twice. `reads` applies to projects only: under HOME these tools read their own files. */
function findReaders(
  adapters: readonly Adapter[],
  scope: Scope,
  ownFiles: readonly string[],
): ReadonlyMap<Adapter, Adapter> {
  const readers = new Map<Adapter, Adapter>();
  if (scope === "global") return readers;
  const hasFile = (adapter: Adapter) => listTargets([adapter], scope).length > 0;
  for (const adapter of adapters) {
    const owner = adapters.find(
      (other) => other !== adapter && other.reads.includes(adapter.id) && hasFile(other) && !readers.has(other),
    );
    if (owner !== undefined && hasFile(adapter) && !ownFiles.includes(adapter.id)) readers.set(adapter, owner);
  }
  return readers;
}

/** Returns the file where a `file-export` adapter keeps the whole text. */
export function exportTarget(adapter: Adapter, places: Places): FileTarget | undefined {
  const { type, exportPath } = adapter;
  if (type !== "file-export" || exportPath === undefined || places.scope !== "global") return undefined;
  const path = resolveTargetPath(exportPath, places);
  const target = { scope: "global", path: exportPath, mode: "replace-file", section: "context" } as const;
  return { path, names: [path], realPath: path, target, adapters: [adapter], limits: [] };
}

/** Returns the target of a file in the project that is Plimsoll's as a whole: a rule, or the SKILL.md of a skill. */
export function wholeFile(path: string): AdapterTarget {
  return { scope: "project", path, mode: "replace-file", section: "context" };
}

export function resolveTargetPath(path: string, { root, home }: Places): string {
  if (path === "~" || path.startsWith("~/")) return join(home, path.slice(2));
  return isAbsolute(path) ? path : resolve(root, path);
}

/** Returns the paths that a text imports. */
export function importedPaths(
  text: string,
  { file, home }: { readonly file: string; readonly home: string },
): string[] {
  return importedNames(text).map((name) =>
    name.startsWith("~/") ? resolve(home, name.slice(2)) : resolve(dirname(file), name),
  );
}

// A file can hold Plimsoll's text in two ways: as a marked block in a person's text, or as a whole file. Files are byte
// strings.

/** The state of a target. `orphaned`: a marker without its partner; `foreign`: a file that somebody else wrote;
 *  `blocked`: another file must change first. */
export type TargetFile =
  | ("unknown" | "not found" | "not injected" | "injected")
  | ("edited" | "orphaned" | "foreign" | "blocked");

export function readTargetState(current: string | undefined, target: AdapterTarget): TargetFile {
  if (current === undefined) return "not found";
  if (target.mode === "replace-file") {
    const ownership = readOwnership(current);
    return ownership.kind === "foreign" ? "foreign" : ownership.edited ? "edited" : "injected";
  }
  const found = markedBlock.find(current, target.section);
  if (found.kind === "none") return "not injected";
  if (found.kind === "broken") return "orphaned";
  return found.block.edited ? "edited" : "injected";
}

/** Returns the text that a person wrote in a file. `file` is a byte string. A pack that mentions `@AGENTS.md` must not turn
 *  its file into an importing file. */
export function readOwnText(file: string, { target }: Pick<FileTarget, "target">): string {
  if (target.mode === "replace-file") return readOwnership(file).kind === "foreign" ? fromByteString(file) : "";
  const found = markedBlock.find(file, target.section);
  return fromByteString(found.kind === "block" ? file.slice(0, found.block.start) + file.slice(found.block.end) : file);
}

/** Returns a function that reads the text of people in a target's file, each file once. A file outside the root is not
 *  read, because writing it is refused later. */
export async function createOwnTextReader(root: string): Promise<(target: FileTarget) => string> {
  const realRoot = await followLinks(root);
  const known = new Map<string, string>();
  return (target) => {
    const { realPath } = target;
    let text = known.get(realPath);
    if (text === undefined) {
      const file = isInside(realPath, realRoot) ? readForeignBytes(realPath, { within: realRoot }) : undefined;
      text = file === undefined ? "" : readOwnText(file, target);
      known.set(realPath, text);
    }
    return text;
  };
}

/** A body in its place. The texts are made on request: a draft that does not fit needs only one of them. */
export interface Placed {
  /** The file as a byte string. */
  bytes(): string;
  /** The file as text. */
  file(): string;
  /** The block with its markers, or the whole file if it is Plimsoll's. */
  block(): string;
}

/** Puts a body into a file. Call `explainRefusal` first: it checks whether the file may be changed. */
export function placeBody(current: string | undefined, body: string, target: AdapterTarget): Placed {
  const byteBody = toByteString(body);
  const whole = target.mode === "replace-file";
  const bytes = once(() => {
    if (!whole) return markedBlock.put(current, target.section, byteBody);
    const own = renderOwnedFile({ preamble: toByteString(target.preamble ?? ""), body: byteBody });
    // Keeps our file as it is if a checkout changed only its line ends.
    return current?.includes("\r\n") && current.replaceAll("\r\n", "\n") === own ? current : own;
  });
  const file = once(() => fromByteString(bytes()));
  const isBlock = whole || current === undefined;
  // Only a file with CRLF line ends changes the block, and putting a body into a long file takes long.
  const inFile = () => (current?.includes("\r\n") ? bytes() : "");
  const block = isBlock ? file : once(() => fromByteString(findBlock(inFile(), byteBody, target)));
  return { bytes, file, block };
}

/** Returns the block as the file holds it: with CRLF line ends it has more bytes. */
function findBlock(file: string, body: string, { section }: AdapterTarget): string {
  const found = file.includes("\r\n") ? markedBlock.find(file, section) : undefined;
  if (found?.kind !== "block") return markedBlock.put(undefined, section, body);
  const { start, end } = found.block;
  return `${file.slice(start, end)}${file.slice(start, end).includes("\r\n") ? "\r\n" : "\n"}`;
}

export function once(make: () => string): () => string {
  let made: string | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** Returns the file without Plimsoll's text, or `undefined` if nothing else was in it. */
export function removeFrom(current: string, target: AdapterTarget): string | undefined {
  return target.mode === "replace-file" ? undefined : markedBlock.remove(current, target.section).file;
}

/** Returns a problem if a person edited or wrote the target, unless forced. Broken markers are always a problem. */
export function explainRefusal(
  state: TargetFile,
  {
    current = "",
    target,
    force,
    skill,
  }: {
    readonly current: string | undefined;
    readonly target: AdapterTarget;
    readonly force: boolean;
    /** The name of the skill that the file belongs to. All its files stay together. */
    readonly skill?: string | undefined;
  },
): ContextError | undefined {
  if (state === "orphaned") {
    const found = markedBlock.find(current, target.section);
    const { line, problem } = found.kind === "broken" ? found : { line: undefined, problem: "broken markers" };
    return new ContextError("refused_target", problem, { line });
  }
  if (force) return undefined;
  const kept = skill === undefined ? "it was not changed" : `the whole skill ${skill} was not changed`;
  if (state === "edited") {
    const what = skill === undefined ? "the block" : "the file";
    return new ContextError("refused_target", `${what} was edited by hand, so ${kept}`, {
      hint: "Move the edit into a pack, or overwrite it with --force.",
    });
  }
  if (state === "foreign") {
    return new ContextError("refused_target", `plimsoll did not write this file, so ${kept}`, {
      hint: "Move it away, or replace it with --force, which keeps a copy as .bak.",
    });
  }
  return undefined;
}

export interface TargetChange<Facts> extends AttemptOptions<Facts> {
  /** The targets that the file may hold. */
  readonly targets: readonly AdapterTarget[];
  /** Returns whether a person wrote or edited the file. The default looks at `targets`. */
  readonly isPersons?: ((before: string) => boolean) | undefined;
  readonly force: boolean;
}

/** Changes the file of a target. Before `force` overwrites a person's file or edit, it keeps a copy beside the file. */
export async function changeTarget<Facts>(path: string, options: TargetChange<Facts>): Promise<AttemptedChange<Facts>> {
  if (options.force && !options.dryRun) {
    const { change, facts, problem } = await attemptChange(path, { ...options, dryRun: true });
    if (problem !== undefined) return { facts, problem };
    const { before, after } = change;
    const states = (text: string) => options.targets.map((target) => readTargetState(text, target));
    const isPersons =
      options.isPersons ?? ((text: string) => states(text).some((each) => each === "foreign" || each === "edited"));
    const isLost = before !== undefined && before !== after && isPersons(before);
    const failed = isLost ? await keepCopy(path, before, options) : undefined;
    if (failed !== undefined) return { facts, problem: failed };
  }
  return attemptChange(path, options);
}
