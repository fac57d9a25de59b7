/** Remembers what a command changes, so that `undo` can take it back byte for byte. A record is on the disk before the
 *  change that it is about, so it survives a kill at any point. */
import { existsSync, lstatSync, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createHash, randomBytes } from "../../core/crypto.ts";
import { ContextError } from "../../core/errors.ts";
import { type Environment, stateDirectory } from "../directories.ts";
import { isAlive, ownIdentity, type ProcessIdentity } from "../processes/process-identity.ts";
import { attemptChange, type ComingChange, changeRecorder, keepCopy } from "./change-file.ts";
import { removeEmptyFolders, removeTree } from "./folder-tree.ts";
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
function hashContent(content: string): string {
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
function removeRun(folder: string): Promise<void> {
  return removeTree(folder, { first: "run.json" });
}

/** Never in the project: a repository could bring records that make `undo` write what its author wants. */
function runsFolder({ root, env }: JournalPlace): string {
  return join(stateDirectory(env), "undo", hashContent(Buffer.from(root).toString("latin1")).slice(0, 16));
}

// Takes back what a recorded command changed. A file that a person changed since is left alone and named.

export interface UndoneFile {
  readonly path: string;
  /** `unchanged`: the file already was as before the command. */
  readonly state: "restored" | "removed" | "unchanged" | "refused";
  readonly problem?: ContextError | undefined;
}

export interface UndoOptions {
  readonly env: Environment;
  readonly dryRun: boolean;
  /** Also restore files that a person changed since. Their text stays in a `.bak` file. */
  readonly force: boolean;
}

/** Restores the files, the last one first. Safe to repeat after a kill. The records are deleted once every file is as it
 *  was. */
export async function undoRun({ folder, changes }: RecordedRun, options: UndoOptions): Promise<UndoneFile[]> {
  const byPath = new Map<string, RecordedChange[]>();
  for (const change of changes) byPath.set(change.path, [...(byPath.get(change.path) ?? []), change]);
  const files: UndoneFile[] = [];
  for (const ofFile of [...byPath.values()].reverse()) files.push(await restoreFile(ofFile, options));
  if (!options.dryRun && files.every(({ state }) => state !== "refused")) await removeRun(folder);
  return files;
}

/** `changes` are those of one file, in order. The command may have been killed before any of them. */
async function restoreFile(changes: readonly RecordedChange[], options: UndoOptions): Promise<UndoneFile> {
  const { path, root, before, mode, newFolders } = changes[0]!;
  const { env, dryRun, force } = options;
  const hash = (content: string | null | undefined) => (content == null ? null : hashContent(content));
  const known = new Set(changes.flatMap((change) => [hash(change.before), change.after]));
  const plan = (current: string | undefined) => {
    const isOurs = known.has(hash(current)) || force;
    if (isOurs) return { after: before ?? undefined, facts: undefined };
    const hint = "Use --force to restore it anyway; your text is then kept as .bak.";
    return {
      problem: new ContextError("refused_target", "was changed since, so it stays", { hint }),
      facts: undefined,
    };
  };
  const look = await attemptChange(path, { root, env, dryRun: true, plan });
  if (look.problem !== undefined) return { path, state: "refused", problem: look.problem };
  const current = look.change.before;
  const state = current === look.change.after ? "unchanged" : before === null ? "removed" : "restored";
  if (dryRun) return { path, state };
  const isLost = current !== undefined && !known.has(hash(current));
  const failed = isLost ? await keepCopy(path, current, { root, env }) : undefined;
  // Also without a change: a killed run may have left a temporary file and empty folders.
  const { problem } = failed ? { problem: failed } : await attemptChange(path, { root, env, mode, plan });
  if (problem !== undefined) return { path, state: "refused", problem };
  if (before === null) await removeEmptyFolders(path, root, newFolders);
  return { path, state };
}
