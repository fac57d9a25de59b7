/** Watches folders that may not be there yet. */
import { type FSWatcher, type Stats, statSync, watch } from "node:fs";
import { basename, dirname } from "node:path";

export interface WatchOptions {
  readonly onChange: () => void;
  readonly onError: (error: unknown) => void;
}

export interface WatchedFolders {
  /** Watches these folders and no others. To be called after a change too: a folder may have come, gone or been replaced. */
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
  /** Tells a folder from another one that took its place. */
  readonly identity: string;
  /** The entry of `path` that is waited for; what else happens there is not ours, and below there may be a whole disk. */
  readonly awaited?: string;
}

/** The folder, and the nearest one around it that is there: a folder does not tell that it came, went or was replaced. */
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

/** The number of a folder that is gone may be given to the next one. */
function identityOf({ dev, ino, birthtimeMs }: Stats): string {
  return `${dev}:${ino}:${birthtimeMs}`;
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    // Below a file, or where we may not look.
    return undefined;
  }
}
