/** Watches the content of inject. Reports when a project's `.plimsoll` folder is missing, as on a branch without it. */
import { existsSync, type FSWatcher, statSync, watch } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { countNoun } from "../../core/text/index.ts";
import { type Caller, configDirectory, homeDirectory, loadConfig, projectRoot, shownPath } from "../../host/index.ts";
import { companyDirectory } from "../sync/company.ts";
import type { InjectChoice } from "./prepare-inject.ts";

/** Calls `work` now and whenever the content changes, one call after the other, but not while the project's folder is
 *  missing. Watches until the process ends. Rejects if a watcher or `work` fails. */
export async function watchContent(choice: InjectChoice, caller: Caller, work: () => Promise<void>): Promise<never> {
  const first = await contentFolders(choice, caller);
  const isPaused = createPause(first[0]!, choice, caller);
  return new Promise<never>((_, fail) => {
    let timer: NodeJS.Timeout | undefined;
    let running = Promise.resolve();
    const onChange = () => {
      clearTimeout(timer);
      // Editors write a file in several steps.
      timer = setTimeout(() => run(), 150);
    };
    const watching = watchFolders({ onChange, onError: fail });
    const run = () => {
      // Looks up the folders before reading them, because folders and configuration change.
      running = running
        .then(async () => watching.update([...new Set([first[0]!, ...(await contentFolders(choice, caller))])]))
        .then(() => (isPaused() ? undefined : work()))
        .catch(fail);
    };
    watching.update(first);
    run();
    caller.output.note(`watching ${countNoun(first.length, "folder")}; stop with Ctrl-C`);
  });
}

/** Returns a function that says whether the project's folder existed and is missing now. A project that never had one
 *  gets the built-in packs. */
function createPause(folder: string, { scope }: InjectChoice, { cwd, env, output }: Caller): () => boolean {
  let wasThere = existsSync(folder);
  let isPaused = false;
  return () => {
    const isThere = existsSync(folder);
    const isGone = scope === "project" && wasThere && !isThere;
    wasThere ||= isThere;
    if (isGone === isPaused) return isPaused;
    isPaused = isGone;
    const name = shownPath(folder, cwd, env);
    output.note(isPaused ? `${name} was removed; nothing is written until it is back` : `${name} is back`);
    if (output.json) output.result(JSON.stringify({ paused: isPaused, folder: name }));
    return isPaused;
  };
}

/** Returns the folders to watch: the project's or the user's content, `content`, the company's packs, notes and
 *  configuration. */
async function contentFolders({ scope, content }: InjectChoice, { cwd, env }: Caller): Promise<string[]> {
  const home = homeDirectory(env);
  const isGlobal = scope === "global";
  const root = isGlobal ? home : projectRoot(cwd, home);
  const own = isGlobal ? configDirectory(env) : join(root, ".plimsoll");
  const named = content === undefined ? [] : [resolve(cwd, content)];
  // The run reports mistakes in the configuration, and its folder is watched.
  const company = await loadConfig({ cwd: isGlobal ? home : cwd, env, projectOnly: !isGlobal })
    .then(({ values }) => companyDirectory(values.company, { root, env }))
    .catch(() => undefined);
  return [...new Set([own, ...named, ...(company === undefined ? [] : [company])])];
}

export interface WatchedFolders {
  /** Watches exactly these folders. Call it after every change, because a folder may be new, removed or replaced. */
  update(folders: readonly string[]): void;
}

/** Watches folders that may not exist yet. */
export function watchFolders({
  onChange,
  onError,
}: {
  readonly onChange: () => void;
  readonly onError: (error: unknown) => void;
}): WatchedFolders {
  const watchers = new Map<string, FSWatcher>();
  return {
    update(folders) {
      const places = new Map(folders.flatMap(findPlaces).map((place) => [JSON.stringify(place), place]));
      for (const [key, watcher] of watchers) {
        if (places.has(key)) continue;
        watcher.close();
        watchers.delete(key);
      }
      for (const [key, { path, awaited }] of places) {
        if (watchers.has(key)) continue;
        const watcher = watch(path, { recursive: awaited === undefined }, (_, name) => {
          if (awaited === undefined || name === null || name === awaited) onChange();
        });
        watchers.set(key, watcher.on("error", onError));
      }
    },
  };
}

interface Place {
  readonly path: string;
  /** Distinguishes a folder from a later one at the same path. */
  readonly identity: string;
  /** The entry of `path` to wait for. Other events are ignored. */
  readonly awaited?: string;
}

/** Returns the folder and its nearest existing parent, because a folder does not report its own creation or removal. */
function findPlaces(folder: string): Place[] {
  const own = identifyFolder(folder);
  const places: Place[] = own === undefined ? [] : [{ path: folder, identity: own }];
  for (let path = folder; dirname(path) !== path; path = dirname(path)) {
    const identity = identifyFolder(dirname(path));
    if (identity === undefined) continue;
    return [...places, { path: dirname(path), identity, awaited: basename(path) }];
  }
  return places;
}

/** Returns undefined if there is no folder. A new folder may get the inode of a removed one. */
function identifyFolder(path: string): string | undefined {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats?.isDirectory() ? `${stats.dev}:${stats.ino}:${stats.birthtimeMs}` : undefined;
  } catch {
    // Below a file, or not readable.
    return undefined;
  }
}
