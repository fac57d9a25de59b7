/** `.gitignore` files where there is no repository, or no git to ask. */
import { lstat, readFile } from "node:fs/promises";
import type { Ignore } from "ignore";
import { diskName } from "../frame/byte-names.ts";

export interface IgnoredEntries {
  /** `path` is relative to the root, and a directory's ends with a slash. */
  ignores(path: string): boolean;
  /** Those that hold inside a directory; the same object when it adds none. `path` is "" or ends with a slash. */
  enter(path: string, root: string): Promise<IgnoredEntries>;
}

export async function createIgnoredEntries(): Promise<IgnoredEntries> {
  const { default: ignore } = await import("ignore");
  return entriesOf([], () => ignore({ ignorecase: false }));
}

interface Level {
  readonly prefix: string;
  readonly rules: Ignore;
}

/** Nearest first: the deepest file that has a word on a path decides. */
function entriesOf(levels: readonly Level[], createRules: () => Ignore): IgnoredEntries {
  const entries: IgnoredEntries = {
    ignores: (path) => {
      for (const { prefix, rules } of levels) {
        const { ignored, unignored } = rules.test(path.slice(prefix.length));
        if (ignored || unignored) return ignored;
      }
      return false;
    },
    enter: async (path, root) => {
      const text = await readRules(diskName(`${root}/${path}.gitignore`));
      if (text === undefined) return entries;
      return entriesOf([{ prefix: path, rules: createRules().add(text) }, ...levels], createRules);
    },
  };
  return entries;
}

/** Hand-written files are far smaller; a pipe would be waited for. */
const maxBytes = 1024 * 1024;

async function readRules(path: string | Buffer): Promise<string | undefined> {
  try {
    const stats = await lstat(path);
    return stats.isFile() && stats.size <= maxBytes ? await readFile(path, "utf8") : undefined;
  } catch {
    return undefined;
  }
}
