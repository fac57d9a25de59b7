/** The only way to write a person's file. Even after kill -9 the file is either the old one or the complete new one.
 *  Two writers never mix. A file that cannot be written safely is refused with the reason. */

import { AsyncLocalStorage } from "node:async_hooks";
import { accessSync, closeSync, constants, existsSync, openSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { isSecretName } from "../../core/text/index.ts";
import type { Environment } from "../directories.ts";
import { withLock } from "./lock.ts";
import { type OpenFolder, openFolder } from "./open-folder.ts";
import { followLinks, isGitInternal, isInside } from "./paths.ts";
import { maxTextBytes, systemReason } from "./read-text.ts";
import { type FileState, listTemporaries, readFileState, removeStaleTemporaries, replaceFile } from "./replace-file.ts";

/** Contents are byte strings (`latin1`). `undefined` is a file that does not exist. */
export interface FileChange {
  readonly path: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
  readonly written: boolean;
}

/** A change of a person's file that is about to happen. */
export interface ComingChange extends Pick<FileChange, "path" | "before" | "after"> {
  readonly root: string;
  /** The permissions of the file before. */
  readonly mode: number | undefined;
}

/** Set while a command records its changes. Kept here, so that other commands need not load the code for records. */
export const changeRecorder: AsyncLocalStorage<(change: ComingChange) => Promise<void>> = new AsyncLocalStorage();

interface WriteOptions {
  /** The file must be inside this folder, with links followed. */
  readonly root: string;
  readonly dryRun?: boolean | undefined;
  /** The file is Plimsoll's own and only for the user: a new file gets mode 0600, and new directories 0700. */
  readonly isPrivate?: boolean | undefined;
  /** The permissions that the file gets, instead of those that it has. */
  readonly mode?: number | undefined;
  /** Determines the folder of the locks. @default process.env */
  readonly env?: Environment | undefined;
}

export interface ChangeOptions extends WriteOptions {
  /** Maps the current content to the new content, `undefined` to delete the file. May be called more than once, so it
   *  must be pure. */
  readonly change: (current: string | undefined) => string | undefined;
}

/** Reads, changes and writes one file as a single step. Writes nothing and takes no lock if nothing changes. */
export async function changeFile(path: string, { change, ...options }: ChangeOptions): Promise<FileChange> {
  const plan = (current: string | undefined) => ({ after: change(current), facts: undefined });
  const done = await attemptChange(path, { ...options, plan });
  if (done.problem !== undefined) throw done.problem;
  return done.change;
}

export interface AttemptOptions<Facts> extends WriteOptions {
  /** Plans the change of the current content. May be called more than once, so it must be pure. */
  readonly plan: (current: string | undefined) => PlannedChange<Facts>;
}

/** The new content, `undefined` to delete the file, or the problem that stops the change. The caller gets `facts`. */
export type PlannedChange<Facts> = { readonly facts: Facts } & (
  | { readonly after: string | undefined; readonly problem?: undefined }
  | { readonly problem: ContextError }
);

/** `facts` belong to the last plan. They are absent if the file could not even be read. */
export type AttemptedChange<Facts> =
  | { readonly change: FileChange; readonly facts: Facts; readonly problem?: undefined }
  | { readonly change?: undefined; readonly facts: Facts | undefined; readonly problem: ContextError };

/** Works as `changeFile`, but returns the facts of the plan, and returns a problem instead of throwing it. */
export async function attemptChange<Facts>(
  path: string,
  options: AttemptOptions<Facts>,
): Promise<AttemptedChange<Facts>> {
  let look: Look<Facts> | undefined;
  try {
    const target = await resolveTarget(path, options.root);
    look = inFolder(target, (folder) => lookAtFile({ folder, name: target.name }, options));
    const isDone = look.problem !== undefined || (!look.differs && !look.hasTemporaries);
    const lock = { env: options.env ?? process.env };
    const done: Done<Facts> =
      options.dryRun || isDone
        ? { ...look, written: false }
        : await withLock(join(target.directory, target.name), lock, () => changeLocked(target, { ...options, path }));
    const { before, after, written, facts } = done;
    if (done.problem !== undefined) return { facts, problem: describeProblem(path, done.problem) };
    return { change: { path, before, after, written }, facts };
  } catch (error) {
    return { facts: look?.facts, problem: describeProblem(path, error) };
  }
}

/** One look at the file, and the change that was planned for it. */
interface Look<Facts> {
  readonly before: string | undefined;
  readonly after: string | undefined;
  readonly state: FileState;
  readonly differs: boolean;
  /** Whether an unchanged file has some, from a killed run. */
  readonly hasTemporaries: boolean;
  readonly facts: Facts;
  readonly problem?: ContextError | undefined;
}

interface Looked {
  /** `undefined` if it does not exist. */
  readonly folder: OpenFolder | undefined;
  readonly name: string;
}

function lookAtFile<Facts>({ folder, name }: Looked, { plan }: AttemptOptions<Facts>): Look<Facts> {
  const state = folder && readFileState(folder.at(name));
  refuseKind(state);
  const before = folder && state && readBytes(folder.at(name)).toString("latin1");
  // Plimsoll's text is UTF-8: inside another encoding it would damage the file. Bytes above 127 are kept, so they
  // are allowed.
  if (before !== undefined) {
    if (before.startsWith("\xff\xfe") || before.startsWith("\xfe\xff")) {
      throw new ContextError("refused_target", "is UTF-16 text", { hint: "Convert it to UTF-8." });
    }
    if (before.slice(0, 8192).includes("\0")) {
      throw new ContextError("refused_target", "is not a text file: it holds NUL bytes");
    }
  }
  const planned = plan(before);
  const { facts } = planned;
  if (planned.problem !== undefined) {
    return { before, after: before, state, differs: false, hasTemporaries: false, facts, problem: planned.problem };
  }
  const { after } = planned;
  const differs = after !== before;
  const problem = folder && differs ? readOnlyProblem(folder.at(name), state) : undefined;
  const hasTemporaries = folder !== undefined && !differs && listTemporaries({ folder, name }).length > 0;
  return { before, after, state, differs, hasTemporaries, facts, problem };
}

/** A link or a pipe may have replaced the file meanwhile: it is neither followed nor waited for. */
function readBytes(path: string): Buffer {
  const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
  const descriptor = openSync(path, flags);
  try {
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

interface Done<Facts> extends Look<Facts> {
  readonly written: boolean;
}

async function changeLocked<Facts>(
  target: Target,
  options: AttemptOptions<Facts> & { readonly path: string },
): Promise<Done<Facts>> {
  // A program that keeps saving the file is not worth waiting for.
  const maxAttempts = 20;
  const { name } = target;
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const look = inFolder(target, (folder) => {
      if (folder !== undefined && attempt === 0) removeStaleTemporaries({ folder, name });
      return lookAtFile({ folder, name }, options);
    });
    const { before, after, state, differs, problem } = look;
    if (!differs || problem !== undefined) return { ...look, written: false };
    const { isPrivate, mode, root } = options;
    const path = resolve(root, options.path);
    if (!isPrivate)
      await changeRecorder.getStore()?.({ path, root, before, after, mode: state && state.mode & 0o7777 });
    const bytes = after === undefined ? undefined : toBytes(after);
    const replace = (folder: OpenFolder | undefined) =>
      replaceFile({ folder: folder!, name }, { bytes, expected: state, isPrivate, mode });
    if (inFolder({ ...target, mode: isPrivate ? 0o700 : 0o777 }, replace)) return { ...look, written: true };
  }
  throw new ContextError("write_failed", "another program keeps changing it", {
    hint: "Run the command again.",
  });
}

/** Opens the folder of the target for one action. Makes it if a mode is given. */
function inFolder<Result>(
  { root, directory, mode }: Omit<Target, "name"> & { readonly mode?: number },
  action: (folder: OpenFolder | undefined) => Result,
): Result {
  const folder = openFolder(directory, { root, mode });
  try {
    return action(folder);
  } finally {
    folder?.close();
  }
}

function toBytes(byteString: string): Buffer {
  const bytes = Buffer.from(byteString, "latin1");
  if (bytes.toString("latin1") !== byteString) throw new TypeError("changeFile takes byte strings, not text");
  return bytes;
}

const writeReasons: Readonly<Record<string, string>> = {
  EACCES: "no permission to write in its directory",
  EPERM: "the system does not permit writing it",
  EROFS: "its file system is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  ENAMETOOLONG: "its name is too long",
};

/** Adds the file to an expected error, and turns a failed system call into one. Rethrows a bug. */
function describeProblem(path: string, error: unknown): ContextError {
  if (error instanceof ContextError) {
    const { code, message, hint, file = path, line, cause } = error;
    return new ContextError(code, message, { hint, file, line, cause });
  }
  const code = error instanceof Error && "syscall" in error && "code" in error ? String(error.code) : undefined;
  if (code === undefined) throw error;
  return new ContextError("write_failed", writeReasons[code] ?? `cannot be written (${code})`, {
    file: path,
    cause: error,
  });
}

/** Where a file really is, or will be. */
interface Target {
  /** The real path of the root. */
  readonly root: string;
  readonly directory: string;
  readonly name: string;
}

/** Throws if the path leaves `root`, by its name or through a link. */
async function resolveTarget(path: string, root: string): Promise<Target> {
  const named = resolve(root, path);
  const realRoot = realpathSync.native(root);
  const real = await followLinks(named).catch((error: unknown) => {
    const reason = systemReason(error, { EACCES: "no permission to reach it" });
    throw new ContextError("refused_target", reason, { file: path, cause: error });
  });
  if (isGitInternal(relative(realRoot, real))) {
    throw new ContextError("refused_target", "is in .git, which belongs to git", { file: path });
  }
  const isLinked = real !== join(realRoot, relative(resolve(root), named));
  if (isLinked && isSecretName(relative(realRoot, real))) {
    throw new ContextError("refused_target", `is a link to ${real}, which usually holds secrets`, {
      file: path,
      hint: "Replace the link with a file.",
    });
  }
  if (real === realRoot) throw notFile("a directory");
  if (isInside(real, realRoot)) return { root: realRoot, directory: dirname(real), name: basename(real) };
  const how = isInside(named, resolve(root)) ? "leads through a symbolic link" : "is";
  throw new ContextError("refused_target", `${how} out of ${root}, to ${real}`, {
    file: path,
    hint: "Replace it with a file, or with a link that stays inside.",
  });
}

// Files that must not be written, whatever a person asked for. The reasons are messages for that person.

/** Opening a pipe would wait forever, and a directory cannot be replaced. */
function refuseKind(state: FileState): void {
  if (state === undefined) return;
  const kind = state.mode & constants.S_IFMT;
  if (kind === constants.S_IFREG && state.size <= maxTextBytes) return;
  if (kind === constants.S_IFREG) {
    const size = `${Math.ceil(state.size / (1024 * 1024))} MB`;
    throw new ContextError("refused_target", `has ${size}, which no tool can read`);
  }
  throw notFile(kind === constants.S_IFDIR ? "a directory" : "a pipe, socket or device");
}

function notFile(what: string): ContextError {
  return new ContextError("refused_target", `is ${what}, not a file`, { hint: "Move it away." });
}

/** A rename ignores the file's mode, and root may do anything. So the mode is checked here. */
function readOnlyProblem(path: string, state: FileState): ContextError | undefined {
  if (state === undefined) return undefined;
  let isWritable = (state.mode & constants.S_IWUSR) !== 0;
  try {
    accessSync(path, constants.W_OK);
  } catch {
    isWritable = false;
  }
  if (isWritable) return undefined;
  const mode = (state.mode & 0o777).toString(8).padStart(4, "0");
  return new ContextError("refused_target", `is read-only (mode ${mode})`, {
    hint: "Allow writing: chmod u+w.",
  });
}

// Copies of people's text that `--force` overwrites: beside the file, with `.bak` at the end.

/** Returns the copies of a file that runs with `force` kept. */
export function keptCopies(path: string): string[] {
  const copies: string[] = [];
  for (let copy = copyName(path, 0); existsSync(copy); copy = copyName(path, copies.length)) copies.push(copy);
  return copies;
}

function copyName(path: string, number: number): string {
  return `${path}.bak${number === 0 ? "" : `.${number}`}`;
}

/** Copies to the first `.bak` name that is free or already holds the same content. Returns the problem if it fails. */
export async function keepCopy(
  path: string,
  content: string,
  options: Omit<AttemptOptions<unknown>, "plan">,
): Promise<ContextError | undefined> {
  for (let number = 0; ; number++) {
    const copy = copyName(path, number);
    const plan = (current: string | undefined) => ({ after: current ?? content, facts: undefined });
    const { change, problem } = await attemptChange(copy, { ...options, plan });
    if (problem !== undefined || change.after === content) return problem;
  }
}
