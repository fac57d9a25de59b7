import type { Hash } from "node:crypto";
import { isFailure, type ToolFailure } from "../../session/index.ts";
import { hashed, splitRecords } from "../../workspace/index.ts";
import type { Run } from "../frame/run.ts";
import { nameOfBytes } from "./byte-names.ts";
import { deniedByGit } from "./denied.ts";
import { startListing } from "./git.ts";

export interface GitPaths {
  /** Sorted by bytes. A nested repository that git does not know ends with a slash. */
  readonly batches: AsyncIterable<string[]>;
  /** Asked after the batches were read. */
  succeeded(): Promise<boolean>;
  /** Asked after the batches were read: directories that may not be read. */
  denied(): Promise<number>;
}

/** What git tracks below `path`, and what it would track: one list, each path once. */
export async function gitPaths(run: Run, path: string, hash: Hash): Promise<GitPaths | ToolFailure> {
  // The letters of `-t` tell the kinds apart: `?` is not tracked, `S` is not checked out.
  const git = await startListing(run, ["-t", "--cached", "--others"], path);
  if (isFailure(git)) return git;
  return {
    batches: mergeKinds(splitRecords(hashed(git.output, hash), "\0")),
    succeeded: async () => (await git.end).code === 0,
    denied: async () => deniedByGit((await git.end).stderr),
  };
}

/** git lists what is not tracked first, then what is. The first list, mostly short, is kept and goes where it belongs. */
async function* mergeKinds(records: AsyncIterable<string[]>): AsyncGenerator<string[]> {
  const others: string[] = [];
  let next = 0;
  let last: string | undefined;
  for await (const batch of records) {
    const merged: string[] = [];
    for (const record of batch) {
      const path = record.slice(2);
      if (record.startsWith("?")) {
        others.push(path);
        continue;
      }
      // A file in conflict is listed once for each of its versions.
      if (record.startsWith("S") || path === last) continue;
      last = path;
      for (let other = others[next]; other !== undefined && other < path; other = others[++next]) {
        merged.push(nameOfBytes(other));
      }
      merged.push(nameOfBytes(path));
    }
    yield merged;
  }
  yield others.slice(next).map(nameOfBytes);
}
