/** The only way to write a person's file. Even after kill -9 the file is either the old one or the complete new one.
 *  Two writers never mix. A file that cannot be written safely is refused with the reason. */

import { access, constants, readFile, realpath } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { ContextError } from "../../errors.ts";
import { isSecretName } from "../../text/index.ts";
import type { Environment } from "../directories.ts";
import { withLock } from "./lock.ts";
import { followLinks, isGitInternal, isInside } from "./paths.ts";
import { maxTextBytes, systemReason } from "./read-text.ts";
import { type FileState, fileStateOf, listTemporaries, removeStaleTemporaries, replaceFile } from "./replace-file.ts";

/** Contents are byte strings (`latin1`). `undefined` is a file that does not exist. */
export interface FileChange {
  readonly path: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
  readonly written: boolean;
}

interface WriteOptions {
  /** The file must be inside this folder, with links followed. */
  readonly root: string;
  readonly dryRun?: boolean | undefined;
  /** The file is Plimsoll's own and only for the user: a new file gets mode 0600, and new directories 0700. */
  readonly isPrivate?: boolean | undefined;
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
    look = await lookAt(target, options);
    const isDone = look.problem !== undefined || (!look.differs && (await listTemporaries(target)).length === 0);
    const lock = { env: options.env ?? process.env };
    const done: Done<Facts> =
      options.dryRun || isDone
        ? { ...look, written: false }
        : await withLock(target, lock, () => changeLocked(target, options));
    const { before, after, written, facts } = done;
    if (done.problem !== undefined) return { facts, problem: problemOf(path, done.problem) };
    return { change: { path, before, after, written }, facts };
  } catch (error) {
    return { facts: look?.facts, problem: problemOf(path, error) };
  }
}

/** One look at the file, and the change that was planned for it. */
interface Look<Facts> {
  readonly before: string | undefined;
  readonly after: string | undefined;
  readonly state: FileState;
  readonly differs: boolean;
  readonly facts: Facts;
  readonly problem?: ContextError | undefined;
}

async function lookAt<Facts>(target: string, { plan }: AttemptOptions<Facts>): Promise<Look<Facts>> {
  const state = await fileStateOf(target);
  refuseKind(state);
  const before = state === undefined ? undefined : (await readFile(target)).toString("latin1");
  refuseContent(before);
  const planned = plan(before);
  const { facts } = planned;
  if (planned.problem !== undefined) {
    return { before, after: before, state, differs: false, facts, problem: planned.problem };
  }
  const { after } = planned;
  const differs = after !== before;
  const problem = differs ? await readOnlyProblem(target, state) : undefined;
  return { before, after, state, differs, facts, problem };
}

interface Done<Facts> extends Look<Facts> {
  readonly written: boolean;
}

/** A program that keeps saving the file is not worth waiting for. */
const mostAttempts = 20;

async function changeLocked<Facts>(target: string, options: AttemptOptions<Facts>): Promise<Done<Facts>> {
  await removeStaleTemporaries(target);
  const { isPrivate } = options;
  for (let attempt = 0; attempt < mostAttempts; attempt++) {
    const look = await lookAt(target, options);
    const { after, state, differs, problem } = look;
    if (!differs || problem !== undefined) return { ...look, written: false };
    const bytes = after === undefined ? undefined : toBytes(after);
    if (await replaceFile(target, { bytes, expected: state, isPrivate })) return { ...look, written: true };
  }
  throw new ContextError("write_failed", "another program keeps changing it", {
    hint: "Run the command again.",
  });
}

function toBytes(byteString: string): Buffer {
  const bytes = Buffer.from(byteString, "latin1");
  if (bytes.toString("latin1") !== byteString) throw new TypeError("changeFile takes byte strings, not text");
  return bytes;
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: "no permission to write in its directory",
  EPERM: "the system does not permit writing it",
  EROFS: "its file system is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  ENAMETOOLONG: "its name is too long",
};

/** Adds the file to an expected error, and turns a failed system call into one. Rethrows a bug. */
function problemOf(path: string, error: unknown): ContextError {
  if (error instanceof ContextError) {
    const { code, message, hint, file = path, line, cause } = error;
    return new ContextError(code, message, { hint, file, line, cause });
  }
  const code = error instanceof Error && "syscall" in error && "code" in error ? String(error.code) : undefined;
  if (code === undefined) throw error;
  return new ContextError("write_failed", reasons[code] ?? `cannot be written (${code})`, {
    file: path,
    cause: error,
  });
}

/** Returns the real path of a file that may not exist yet. Throws if the path leaves `root`, by its name or through a
 *  link. */
async function resolveTarget(path: string, root: string): Promise<string> {
  const named = resolve(root, path);
  const realRoot = await realpath(root);
  const real = await followLinks(named).catch((error: unknown) => {
    throw unreachable(path, error);
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
  if (isInside(real, realRoot)) return real;
  const how = isInside(named, resolve(root)) ? "leads through a symbolic link" : "is";
  throw new ContextError("refused_target", `${how} out of ${root}, to ${real}`, {
    file: path,
    hint: "Replace it with a file, or with a link that stays inside.",
  });
}

function unreachable(path: string, error: unknown): ContextError {
  const reason = systemReason(error, { EACCES: "no permission to reach it" });
  return new ContextError("refused_target", reason, { file: path, cause: error });
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
  const what = kind === constants.S_IFDIR ? "a directory" : "a pipe, socket or device";
  throw new ContextError("refused_target", `is ${what}, not a file`, { hint: "Move it away." });
}

/** Plimsoll's text is UTF-8: inside another encoding it would damage the file. Bytes above 127 are kept, so they are
 *  allowed. */
function refuseContent(bytes: string | undefined): void {
  if (bytes === undefined) return;
  if (bytes.startsWith("\xff\xfe") || bytes.startsWith("\xfe\xff")) {
    throw new ContextError("refused_target", "is UTF-16 text", { hint: "Convert it to UTF-8." });
  }
  if (bytes.slice(0, 8192).includes("\0")) {
    throw new ContextError("refused_target", "is not a text file: it holds NUL bytes");
  }
}

/** A rename ignores the file's mode, and root may do anything. So the mode is checked here. */
async function readOnlyProblem(target: string, state: FileState): Promise<ContextError | undefined> {
  if (state === undefined) return undefined;
  const isWritable = await access(target, constants.W_OK).then(
    () => (state.mode & constants.S_IWUSR) !== 0,
    () => false,
  );
  if (isWritable) return undefined;
  const mode = (state.mode & 0o777).toString(8).padStart(4, "0");
  return new ContextError("refused_target", `is read-only (mode ${mode})`, {
    hint: "Allow writing: chmod u+w.",
  });
}
