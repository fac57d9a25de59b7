/**
 * The one way to write a person's file. Whatever happens, kill -9 included, the file is its old self or the whole new one;
 * two writers never mix; and what cannot be written safely is refused with the reason.
 */
import { readFile } from "node:fs/promises";
import { ContextError } from "../../errors.ts";
import type { Environment } from "../directories.ts";
import { withLock } from "./lock.ts";
import { refuseContent, refuseKind, refuseReadOnly } from "./refused-target.ts";
import {
  type FileState,
  listTemporaries,
  removeStaleTemporaries,
  replaceFile,
  stateOf,
} from "./replace-file.ts";
import { resolveTarget } from "./resolve-target.ts";

/** Contents are byte strings (`latin1`); `undefined` is a file that is not there. */
export interface FileChange {
  readonly path: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
  readonly written: boolean;
}

export interface ChangeOptions {
  /** The file must lie inside, links followed. */
  readonly root: string;
  /** From the current content to the new one, `undefined` to delete. May be called more than once, so it must be pure. */
  readonly change: (current: string | undefined) => string | undefined;
  readonly dryRun?: boolean | undefined;
  /** The file is our own, and nobody else's to read: a new one gets the mode 0600, and new directories 0700. */
  readonly isPrivate?: boolean | undefined;
  /** Where locks are kept; the process's own environment unless given. */
  readonly env?: Environment | undefined;
}

/** Reads, changes and writes one file as a single step. Nothing is written, and no lock made, where nothing changes. */
export async function changeFile(path: string, options: ChangeOptions): Promise<FileChange> {
  try {
    const target = await resolveTarget(path, options.root);
    const plan = await planChange(target, options);
    const isDone = !plan.differs && (await listTemporaries(target)).length === 0;
    if (options.dryRun || isDone) return { path, before: plan.before, after: plan.after, written: false };
    const lock = { env: options.env ?? process.env };
    return { path, ...(await withLock(target, lock, () => changeLocked(target, options))) };
  } catch (error) {
    throw named(path, error);
  }
}

interface Plan {
  readonly before: string | undefined;
  readonly after: string | undefined;
  readonly state: FileState;
  readonly differs: boolean;
}

async function planChange(target: string, { change }: ChangeOptions): Promise<Plan> {
  const state = await stateOf(target);
  refuseKind(state);
  const before = state === undefined ? undefined : (await readFile(target)).toString("latin1");
  refuseContent(before);
  const after = change(before);
  const differs = after !== before;
  if (differs) await refuseReadOnly(target, state);
  return { before, after, state, differs };
}

/** Programs that save the file again and again are not worth waiting for. */
const mostAttempts = 20;

async function changeLocked(target: string, options: ChangeOptions): Promise<Omit<FileChange, "path">> {
  await removeStaleTemporaries(target);
  for (let attempt = 0; attempt < mostAttempts; attempt++) {
    const { before, after, state, differs } = await planChange(target, options);
    if (!differs) return { before, after, written: false };
    const bytes = after === undefined ? undefined : toBytes(after);
    const { isPrivate } = options;
    if (await replaceFile(target, { bytes, expected: state, isPrivate }))
      return { before, after, written: true };
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

/** Every expected error tells which file; a failing system call becomes one. */
function named(path: string, error: unknown): unknown {
  if (error instanceof ContextError) {
    const { code, message, hint, file = path, line, cause } = error;
    return new ContextError(code, message, { hint, file, line, cause });
  }
  const code =
    error instanceof Error && "syscall" in error && "code" in error ? String(error.code) : undefined;
  if (code === undefined) return error;
  return new ContextError("write_failed", reasons[code] ?? `cannot be written (${code})`, {
    file: path,
    cause: error,
  });
}
