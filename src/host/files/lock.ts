/** Locks that allow one writer per target, across processes. A lock is a file in the user's state directory, never in
 *  the repository. It is linked into place, so it names its owner from the start. A dead owner's lock is taken over at
 *  once. If the state directory cannot be written, locks are in the user's own folder below the temporary directory.
 *  Each step is so short that waiting for another thread would take longer. */

import { createHash, randomUUID } from "node:crypto";
import { linkSync, lstatSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname, tmpdir, userInfo } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ContextError } from "../../core/errors.ts";
import { type Environment, stateDirectory } from "../directories.ts";
import { isAlive, ownIdentity } from "../processes/process-identity.ts";
import { makeDirectory } from "./make-directory.ts";
import { getErrorCode } from "./read-text.ts";

interface LockOptions {
  readonly env: Environment;
  /** How long to wait for another writer. @default 10_000 */
  readonly waitMs?: number | undefined;
  /** Creates the error for a lock that is still held. `holder` looks like `process 26076 on elsewhere`. */
  heldError?(holder: string): ContextError;
}

/** Runs `action` while nobody else holds the lock of `name`. Waits for another writer, but not forever. */
export async function withLock<T>(name: string, options: LockOptions, action: () => Promise<T>): Promise<T> {
  // Process, its start, a unique word, and the machine.
  const { pid, started = "-" } = ownIdentity();
  const claim = [pid, started, randomUUID(), hostname()].join(" ");
  // process.uptime() is monotonic too, and does not load node:perf_hooks.
  const deadline = process.uptime() * 1000 + (options.waitMs ?? 10_000);
  const isWriting = (holder: string) =>
    new ContextError("write_failed", `${holder} is still writing it`, {
      hint: "Run the command again when that process has ended.",
    });
  const { env, heldError = isWriting } = options;
  const file = await acquireFor(name, { env, claim, deadline, heldError });
  try {
    return await action();
  } finally {
    release(file, claim);
  }
}

/** Returns the file of the lock. */
async function acquireFor(name: string, attempt: Attempt): Promise<string> {
  const { env } = attempt;
  const entry = `${createHash("sha256").update(name).digest("hex").slice(0, 32)}.lock`;
  const state = join(stateDirectory(env), "locks");
  try {
    return await acquireIn(state, entry, attempt);
  } catch (error) {
    const code = getErrorCode(error);
    if (error instanceof ContextError || code === undefined) throw error;
    const directory = await temporaryLocks(env).catch((cause) => {
      throw lockError(cause, `could not create a lock in ${state} (${code})`);
    });
    return acquireIn(directory, entry, attempt).catch((cause) => {
      throw lockError(cause, `could not create a lock in ${state} (${code}) or in ${directory}`);
    });
  }
}

async function acquireIn(directory: string, entry: string, attempt: Attempt): Promise<string> {
  const file = join(directory, entry);
  makeDirectory(directory, 0o700);
  await acquire(file, attempt);
  try {
    await sweep(file, attempt);
    return file;
  } catch (error) {
    release(file, attempt.claim);
    throw error;
  }
}

/** Everybody can write to the temporary directory: another user's link or folder must not decide where Plimsoll's files
 *  go. */
async function temporaryLocks(env: Environment): Promise<string> {
  const user = process.getuid?.();
  const base = env.TMPDIR !== undefined && isAbsolute(env.TMPDIR) ? env.TMPDIR : tmpdir();
  const own = join(base, `plimsoll-${user ?? userInfo().username}`);
  makeDirectory(own, 0o700);
  const found = lstatSync(own);
  const isPrivate = user === undefined || (found.uid === user && (found.mode & 0o077) === 0);
  if (found.isDirectory() && isPrivate) return join(own, "locks");
  throw new ContextError("write_failed", `${own} is not a folder that only you can use`, { hint: stateHint });
}

interface Attempt {
  readonly env: Environment;
  readonly claim: string;
  readonly deadline: number;
  heldError(holder: string): ContextError;
}

async function acquire(file: string, attempt: Attempt): Promise<void> {
  const { claim, deadline } = attempt;
  const own = `${file}.${process.pid}.${randomUUID()}`;
  writeFileSync(own, claim, { mode: 0o600 });
  try {
    for (let pauseMs = 2; !linkOnce(own, file); pauseMs = Math.min(pauseMs * 2, 40)) {
      const holder = readHolder(file);
      if (holder === undefined) continue;
      if (holder.isDead) await clear(file, holder, attempt);
      else if (process.uptime() * 1000 >= deadline)
        throw attempt.heldError(
          holder.host === hostname() ? `process ${holder.pid}` : `process ${holder.pid} on ${holder.host}`,
        );
      else await sleep(pauseMs * (0.5 + Math.random()));
    }
  } finally {
    rmSync(own, { force: true });
  }
}

/** Returns false if the lock exists. A lock is complete as soon as it exists, so nobody sees it without its owner. */
function linkOnce(own: string, file: string): boolean {
  try {
    linkSync(own, file);
    return true;
  } catch (error) {
    if (getErrorCode(error) === "EEXIST") return false;
    throw error;
  }
}

interface Holder {
  readonly claim: string;
  readonly pid: number;
  readonly host: string;
  readonly isDead: boolean;
}

function readHolder(file: string): Holder | undefined {
  // A write takes milliseconds. An owner on another machine cannot be checked, so there the lock's age decides.
  const maxAgeMs = 60_000;
  try {
    const claim = readFileSync(file, "utf8");
    const { mtimeMs } = statSync(file);
    const [pid, started, , host = ""] = claim.split(" ");
    const owner = { pid: Number(pid), started: started === "-" ? undefined : started };
    const isDead = host === hostname() ? !isAlive(owner) : Date.now() - mtimeMs > maxAgeMs;
    return { claim, pid: owner.pid, host, isDead };
  } catch (error) {
    if (getErrorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Removes a dead owner's lock, under another lock: a process with outdated knowledge must not remove the successor's
 *  lock. */
async function clear(file: string, dead: Holder, attempt: Attempt): Promise<void> {
  const guard = `${file}.clear`;
  await acquire(guard, attempt);
  try {
    if (readHolder(file)?.claim === dead.claim) rmSync(file, { force: true });
  } finally {
    release(guard, attempt.claim);
  }
}

function release(file: string, claim: string): void {
  try {
    if (readHolder(file)?.claim === claim) rmSync(file, { force: true });
  } catch {
    // A lock that stays is taken over when this process has ended.
  }
}

/** Removes files of processes that were killed while they waited or cleared a lock. */
async function sweep(file: string, attempt: Attempt): Promise<void> {
  const directory = dirname(file);
  for (const entry of readdirSync(directory)) {
    const path = join(directory, entry);
    if (path.startsWith(`${file}.`)) await removeLeftover(path, attempt);
  }
}

async function removeLeftover(path: string, attempt: Attempt): Promise<void> {
  if (path.endsWith(".clear")) {
    const holder = readHolder(path);
    if (holder?.isDead) await clear(path, holder, attempt);
    return;
  }
  const pid = /\.(\d+)\.[^.]+$/.exec(path)?.[1];
  if (pid !== undefined && !isAlive({ pid: Number(pid) })) rmSync(path, { force: true });
}

const stateHint = "Set XDG_STATE_HOME to a directory that you may write to.";

function lockError(cause: unknown, message: string): unknown {
  const code = getErrorCode(cause);
  if (cause instanceof ContextError || code === undefined) return cause;
  return new ContextError("write_failed", `${message} (${code})`, { hint: stateHint, cause });
}
