/** Remembers what a command changes, so that `undo` can take it back byte for byte. A record is on the disk before the
 *  change that it is about, so it survives a kill at any point. */
import { existsSync, lstatSync, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createHash, randomBytes } from "../../core/crypto.ts";
import { ContextError } from "../../core/errors.ts";
import { type Environment, stateDirectory } from "../directories.ts";
import { isAlive, ownIdentity, type ProcessIdentity } from "../processes/process-identity.ts";
import { type ComingChange, changeRecorder } from "./change-file.ts";
import { removeTree } from "./folder-tree.ts";
import { withLock } from "./lock.ts";
import { isInside, upward } from "./paths.ts";
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

export interface RecordOptions extends JournalPlace {
  readonly command: string;
  /** Called with what was changed before `action` failed. */
  readonly onFailure?: ((run: RecordedRun) => Promise<unknown>) | undefined;
}

/** What is kept. Older runs of other projects are removed too: a project may be gone. */
const kept = { runs: 20, days: 90, bytes: 64 * 2 ** 20 };

/** Records every change of a person's file that happens in `action`. Without a change there is no record. */
export async function recordChanges<Result>(
  { command, root, env, onFailure }: RecordOptions,
  action: () => Promise<Result>,
): Promise<Result> {
  const runs = runsFolder({ root, env });
  const at = new Date().toISOString();
  const folder = join(runs, `${at.replace(/\D/g, "")}-${randomBytes(4).toString("hex")}`);
  const write = (name: string, value: object) => replaceOwnFile(join(folder, name), Buffer.from(JSON.stringify(value)));
  let count = 0;
  const record = async ({ path, root, before, mode, after }: ComingChange) => {
    if (count === 0) {
      await removeOldRuns(runs);
      const about: RunFile = { version: 1, command, root: readFolderIdentity(root), at, process: ownIdentity() };
      await write("run.json", about);
    }
    count++;
    const newFolders = [...upward(dirname(path), root)].filter((folder) => !existsSync(folder));
    const hash = after === undefined ? null : hashContent(after);
    const change: RecordedChange = { path, root, before: before ?? null, mode, after: hash, newFolders };
    await write(`${String(count).padStart(6, "0")}.json`, change);
  };
  try {
    const result = await changeRecorder.run(record, action);
    if (count > 0) await write("done.json", {});
    return result;
  } catch (error) {
    const run = readRun(folder, root);
    if (run !== undefined) await onFailure?.(run);
    throw error;
  }
}

interface RunFile {
  readonly version: 1;
  readonly command: string;
  /** Tells the project from another one that is at the same path later. */
  readonly root: string;
  readonly at: string;
  readonly process: ProcessIdentity;
}

function readFolderIdentity(root: string): string {
  const { dev, ino, birthtimeNs } = statSync(root, { bigint: true });
  return [dev, ino, birthtimeNs].join(" ");
}

/** Runs `action` while no other command of this project records or takes back changes. */
export function withJournal<Result>({ root, env }: JournalPlace, action: () => Promise<Result>): Promise<Result> {
  const heldError = (holder: string) => {
    const message = `another command of this project is changing files that "plimsoll undo" can restore (${holder})`;
    return new ContextError("refused_target", message, { hint: "Wait until it has ended." });
  };
  return withLock(`undo ${root}`, { env, waitMs: 0, heldError }, action);
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
    .flatMap((name) => readRun(join(runs, name), place.root) ?? []);
}

/** Returns `undefined` for records that are damaged, of another user, or about another project. */
function readRun(folder: string, root: string): RecordedRun | undefined {
  // Only what the user's own processes wrote counts. On Windows there are no such ids.
  const owner = lstatSync(folder, { throwIfNoEntry: false });
  if (owner?.isDirectory() !== true || (process.getuid !== undefined && owner.uid !== process.getuid()))
    return undefined;
  const about = readRecord<RunFile>(join(folder, "run.json"));
  if (about?.version !== 1 || about.root !== readFolderIdentity(root)) return undefined;
  const changes: RecordedChange[] = [];
  for (;;) {
    const change = readRecord<RecordedChange>(join(folder, `${String(changes.length + 1).padStart(6, "0")}.json`));
    if (change === undefined) break;
    if (change.root !== root || !isInside(change.path, root)) return undefined;
    changes.push(change);
  }
  const { command, at, process: writer } = about;
  const isDone = existsSync(join(folder, "done.json"));
  return { folder, command, at, state: isDone ? "complete" : isAlive(writer) ? "running" : "interrupted", changes };
}

function readRecord<Value>(path: string): Value | undefined {
  const file = readForeignText(path, { maxBytes: kept.bytes * 4 });
  try {
    return "text" in file ? (JSON.parse(file.text) as Value) : undefined;
  } catch {
    return undefined;
  }
}

async function removeOldRuns(runs: string): Promise<void> {
  const all = dirname(runs);
  const oldest = new Date(Date.now() - kept.days * 86_400_000).toISOString().replace(/\D/g, "");
  const list = async (folder: string) => (await readdir(folder).catch(() => [])).sort();
  for (const project of await list(all))
    for (const name of await list(join(all, project))) if (name < oldest) await removeRun(join(all, project, name));
  let [count, bytes] = [1, 0];
  for (const name of (await list(runs)).reverse()) {
    for (const file of await list(join(runs, name)))
      bytes += lstatSync(join(runs, name, file), { throwIfNoEntry: false })?.size ?? 0;
    count++;
    if (count > kept.runs || bytes > kept.bytes) await removeRun(join(runs, name));
  }
}

/** A run without its first file is no run, so a kill in between leaves none with half of its records. */
export function removeRun(folder: string): Promise<void> {
  return removeTree(folder, { first: "run.json" });
}

/** Never in the project: a repository could bring records that make `undo` write what its author wants. */
function runsFolder({ root, env }: JournalPlace): string {
  return join(stateDirectory(env), "undo", hashContent(Buffer.from(root).toString("latin1")).slice(0, 16));
}
