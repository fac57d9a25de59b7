/** Runs inject again whenever its content changes, until it is interrupted. Reports a mistake in a pack and keeps
 *  watching. Writes nothing while a project's `.plimsoll` folder is missing, as on a branch without it. */
import { existsSync, type FSWatcher, type Stats, statSync, watch } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Call } from "../../cli/command.ts";
import { runInject } from "../../cli/inject/run-inject.ts";
import { ContextError } from "../../core/errors.ts";
import { countNoun } from "../../core/text/index.ts";
import type { Output } from "../../host/index.ts";
import { configDirectory, homeDirectory, loadConfig, projectRoot, reportError, shownPath } from "../../host/index.ts";
import { companyDirectory } from "../index.ts";
import { type InjectFlags, isProjectScope, prepareInject } from "./prepare-inject.ts";

/** Editors write a file in several steps. */
const QUIET_MS = 150;

/** Watches until the process ends. Rejects if a watcher fails. */
export async function watchInject(given: Call<InjectFlags>): Promise<undefined> {
  const call = { ...given, output: inLines(given.output) };
  await refuseUsage(call);
  const first = await contentFolders(call);
  const isPaused = createPause(call, first[0]!);
  await new Promise<never>((_, fail) => {
    let timer: NodeJS.Timeout | undefined;
    let running = Promise.resolve();
    const onChange = () => {
      clearTimeout(timer);
      timer = setTimeout(() => run(), QUIET_MS);
    };
    const watching = watchFolders({ onChange, onError: fail });
    const run = () => {
      // Looks up the folders before reading them, because folders and configuration change.
      running = running
        .then(async () => watching.update([...new Set([first[0]!, ...(await contentFolders(call))])]))
        .then(() => (isPaused() ? undefined : runOnce(call)))
        .catch(fail);
    };
    watching.update(first);
    run();
    const count = first.length;
    call.output.note(`watching ${countNoun(count, "folder")}; stop with Ctrl-C`);
  });
}

/** With `--json` every value is one line, so that a program can read them as they come. */
function inLines(output: Output): Output {
  if (!output.json) return output;
  return { ...output, result: (text) => output.result(JSON.stringify(JSON.parse(text))) };
}

/** Whether the project's folder existed and is missing now. A project that never had one gets the built-in packs. */
function createPause({ cwd, env, options, output }: Call<InjectFlags>, folder: string): () => boolean {
  let wasThere = existsSync(folder);
  let isPaused = false;
  return () => {
    const isThere = existsSync(folder);
    const isGone = isProjectScope(options) && wasThere && !isThere;
    wasThere ||= isThere;
    if (isGone === isPaused) return isPaused;
    isPaused = isGone;
    const name = shownPath(folder, cwd, env);
    output.note(isPaused ? `${name} was removed; nothing is written until it is back` : `${name} is back`);
    if (output.json) output.result(JSON.stringify({ paused: isPaused, folder: name }));
    return isPaused;
  };
}

/** Throws on wrong usage and missing trust before watching starts. */
async function refuseUsage(call: Call<InjectFlags>): Promise<void> {
  await prepareInject({ ...call, output: { ...call.output, note: () => {} } }).catch((error: unknown) => {
    if (error instanceof ContextError && ["usage", "untrusted"].includes(error.code)) throw error;
  });
}

async function runOnce(call: Call<InjectFlags>): Promise<void> {
  try {
    const { json, text } = await runInject(await prepareInject(call), call);
    if (call.output.json) call.output.result(JSON.stringify(json));
    else if (text !== "") call.output.result(text);
  } catch (error) {
    reportError(error, call.output);
  }
}

/** Returns the folders to watch: the project's or the user's content, `--content`, the company's packs, notes and
 *  configuration. */
async function contentFolders({ cwd, env, options }: Call<InjectFlags>): Promise<string[]> {
  const home = homeDirectory(env);
  const isGlobal = !isProjectScope(options);
  const root = isGlobal ? home : projectRoot(cwd, home);
  const own = isGlobal ? configDirectory(env) : join(root, ".plimsoll");
  const named = options.content === undefined ? [] : [resolve(cwd, options.content)];
  // The run reports mistakes in the configuration, and its folder is watched.
  const company = await loadConfig({ cwd: isGlobal ? home : cwd, env, projectOnly: !isGlobal })
    .then(({ values }) => companyDirectory(values.company, { root, env }))
    .catch(() => undefined);
  return [...new Set([own, ...named, ...(company === undefined ? [] : [company])])];
}

/** Options to watch folders that may not exist yet. */
interface WatchOptions {
  readonly onChange: () => void;
  readonly onError: (error: unknown) => void;
}

export interface WatchedFolders {
  /** Watches exactly these folders. Call it after every change, because a folder may be new, removed or replaced. */
  update(folders: readonly string[]): void;
}

export function watchFolders({ onChange, onError }: WatchOptions): WatchedFolders {
  const watchers = new Map<string, FSWatcher>();
  return {
    update(folders) {
      const places = new Map(folders.flatMap(placesOf).map((place) => [JSON.stringify(place), place]));
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
function placesOf(folder: string): Place[] {
  const own = statOf(folder);
  const places: Place[] = own?.isDirectory() === true ? [{ path: folder, identity: identityOf(own) }] : [];
  for (let path = folder; dirname(path) !== path; path = dirname(path)) {
    const around = statOf(dirname(path));
    if (around?.isDirectory() !== true) continue;
    return [...places, { path: dirname(path), identity: identityOf(around), awaited: basename(path) }];
  }
  return places;
}

/** A new folder may get the inode of a removed one. */
function identityOf({ dev, ino, birthtimeMs }: Stats): string {
  return `${dev}:${ino}:${birthtimeMs}`;
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    // Below a file, or not readable.
    return undefined;
  }
}
