/** Remembers what a command changes, so that `undo` can take it back byte for byte. A record is on the disk before the
 *  change that it is about, so it survives a kill at any point. */
import { AsyncLocalStorage } from "node:async_hooks";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createHash, randomBytes } from "../../core/crypto.ts";
import { type Environment, stateDirectory } from "../directories.ts";
import { isAlive, ownIdentity, type ProcessIdentity } from "../processes/process-identity.ts";
import { removeTree } from "./folder-tree.ts";
import { upward } from "./paths.ts";
import { readForeignText } from "./read-foreign.ts";
import { replaceOwnFile } from "./replace-file.ts";

/** One change of one file. Contents are byte strings (`latin1`), and `null` is a file that does not exist. */
export interface RecordedChange {
  readonly path: string;
  /** The folder that the file must be inside. */
  readonly root: string;
  readonly before: string | null;
  /** The permissions of the file before. */
  readonly mode?: number | undefined;
  /** The hash of the content after the change. */
  readonly after: string | null;
  /** Folders that did not exist before, the inner ones first. */
  readonly newFolders: readonly string[];
}

export interface RecordedRun {
  /** Where the records are. */
  readonly folder: string;
  readonly command: string;
  /** ISO 8601. */
  readonly at: string;
  /** `interrupted`: the command ended before it was done. */
  readonly state: "complete" | "running" | "interrupted";
  readonly changes: readonly RecordedChange[];
}

interface JournalPlace {
  /** The project's root. */
  readonly root: string;
  readonly env: Environment;
}

/** Runs that are kept for each project. */
const maxRuns = 20;

const recording = new AsyncLocalStorage<(change: RecordedChange) => Promise<void>>();

/** Records every change of a person's file that happens in `action`. Without a change there is no record. */
export async function recordChanges<Result>(
  { command, root, env }: JournalPlace & { readonly command: string },
  action: () => Promise<Result>,
): Promise<Result> {
  const runs = runsFolder({ root, env });
  const at = new Date().toISOString();
  const folder = join(runs, `${at.replace(/\D/g, "")}-${randomBytes(4).toString("hex")}`);
  const write = (name: string, value: object) => replaceOwnFile(join(folder, name), Buffer.from(JSON.stringify(value)));
  let count = 0;
  const record = async (change: RecordedChange) => {
    if (count === 0) {
      const names = (await readdir(runs).catch(() => [])).sort();
      for (const name of names.slice(0, Math.max(0, names.length - maxRuns + 1))) await removeRun(join(runs, name));
      await write("run.json", { version: 1, command, root, at, process: ownIdentity() });
    }
    count++;
    await write(`${String(count).padStart(6, "0")}.json`, change);
  };
  const result = await recording.run(record, action);
  if (count > 0) await write("done.json", {});
  return result;
}

/** Called before a file is changed. Does nothing outside of `recordChanges`. */
export async function recordChange(
  change: Pick<RecordedChange, "path" | "root" | "mode"> & {
    readonly before: string | undefined;
    readonly after: string | undefined;
  },
): Promise<void> {
  const record = recording.getStore();
  if (record === undefined) return;
  const { path, root, before = null, mode, after } = change;
  const newFolders = [...upward(dirname(path), root)].filter((folder) => !existsSync(folder));
  await record({ path, root, before, mode, after: after === undefined ? null : hashContent(after), newFolders });
}

/** Returns the hash of a byte string. */
export function hashContent(content: string): string {
  return createHash("sha256").update(content, "latin1").digest("hex");
}

/** Returns the runs of a project that were not taken back, the newest first. */
export async function listRuns(place: JournalPlace): Promise<RecordedRun[]> {
  const runs = runsFolder(place);
  const names = await readdir(runs).catch(() => []);
  return names
    .sort()
    .reverse()
    .flatMap((name) => readRun(join(runs, name)) ?? []);
}

function readRun(folder: string): RecordedRun | undefined {
  const read = <Value>(name: string) => {
    const file = readForeignText(join(folder, name), { maxBytes: 2 ** 28 });
    return "text" in file ? (JSON.parse(file.text) as Value) : undefined;
  };
  const about = read<{ command: string; at: string; process: ProcessIdentity }>("run.json");
  if (about === undefined) return undefined;
  const changes: RecordedChange[] = [];
  for (;;) {
    const change = read<RecordedChange>(`${String(changes.length + 1).padStart(6, "0")}.json`);
    if (change === undefined) break;
    changes.push(change);
  }
  const { command, at, process } = about;
  const isDone = existsSync(join(folder, "done.json"));
  return { folder, command, at, state: isDone ? "complete" : isAlive(process) ? "running" : "interrupted", changes };
}

/** A run without its first file is no run, so a kill in between leaves none with half of its records. */
export function removeRun(folder: string): Promise<void> {
  return removeTree(folder, { first: "run.json" });
}

function runsFolder({ root, env }: JournalPlace): string {
  return join(stateDirectory(env), "undo", hashContent(Buffer.from(root).toString("latin1")).slice(0, 16));
}
