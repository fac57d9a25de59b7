/** The record of trust: for each project, its real path and the hashes of its powerful settings. It is in the user's
 *  state directory, so no repository can bring its own. A command stops at settings without trust, or leaves them out
 *  with a note. */
import { createHash } from "node:crypto";
import { chmod, stat } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { isText, listOf, objectOf, printable, readJson } from "../../core/text/index.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import { configDirectory, type Environment, homeDirectory, stateDirectory } from "../directories.ts";
import { withLock } from "../files/lock.ts";
import { makeDirectory } from "../files/make-directory.ts";
import { exists, followLinks } from "../files/paths.ts";
import { readForeignText } from "../files/read-foreign.ts";
import { replaceOwnFile } from "../files/replace-file.ts";
import type { Caller, Output } from "../print/output.ts";
import { shownPath } from "../print/table.ts";
import { collectOutput, startGit, withoutPasswords } from "../processes/start-git.ts";

/** A setting of a project that could start a program, read outside the root, reach the network or change costs. */
export interface PowerfulSetting {
  /** Absolute. */
  readonly file: string;
  readonly line: number;
  readonly key: string;
  /** For people, without passwords. */
  readonly value: string;
  /** The real directory that the value names, with links followed. */
  readonly target?: string | undefined;
  /** The hash of the file's name, the key, the whole value and its target. The line is not included, since lines
   *  move. */
  readonly hash: string;
}

interface TrustedProject {
  /** The real path. */
  readonly path: string;
  readonly settings: readonly {
    /** Relative to the project's path. */
    readonly file: string;
    readonly key: string;
    readonly value: string;
    readonly hash: string;
  }[];
  /** ISO 8601. */
  readonly trustedAt: string;
}

export interface ProjectPlace {
  /** The project's root. */
  readonly root: string;
  readonly env: Environment;
}

export function powerfulSetting(
  source: Pick<PowerfulSetting, "file" | "line" | "key" | "target"> & {
    readonly root: string;
    readonly value: unknown;
  },
): PowerfulSetting {
  const { root, file, line, key, value, target } = source;
  const parts = JSON.stringify([relative(root, file), key, value, target ?? null]);
  const hash = createHash("sha256").update(parts).digest("hex");
  const written = typeof value === "string" ? value : JSON.stringify(value);
  return { file, line, key, value: withoutPasswords(written), target, hash };
}

/** Returns the settings whose current value nobody has trusted. Reads the record only if there are settings. */
export async function findUntrusted(
  settings: readonly PowerfulSetting[],
  { root, env }: ProjectPlace,
): Promise<readonly PowerfulSetting[]> {
  if (settings.length === 0 || hasTrustVariable(env)) return [];
  const project = await trustRecord.find({ root, env });
  const known = new Set(project?.settings.map(({ hash }) => hash));
  return settings.filter(({ hash }) => !known.has(hash));
}

/** Returns whether the environment trusts every project, as in a CI run of a person's own projects. */
function hasTrustVariable(env: Environment): boolean {
  return env.PLIMSOLL_TRUST === "1";
}

/** The record of what a person has trusted. */
export const trustRecord = {
  /** Returns all trusted projects, sorted by path. */
  async read(env: Environment): Promise<readonly TrustedProject[]> {
    const file = trustFile(env);
    if (!(await exists(file))) return [];
    const read = readForeignText(file);
    if (!("text" in read)) throw new ContextError("unreadable_input", read.reason, { file });
    const record = readJson(read.text, isTrustRecord);
    if (record !== undefined) return record.projects;
    throw new ContextError("store_corrupt", "the record of trusted projects is damaged", {
      file,
      hint: 'Delete it, and run "plimsoll trust" again in the projects that you trust.',
    });
  },

  /** Returns the trusted settings of this project, if any. */
  async find({ root, env }: ProjectPlace): Promise<TrustedProject | undefined> {
    const path = await followLinks(root);
    return (await trustRecord.read(env)).find((project) => project.path === path);
  },

  /** Records these settings as everything that is trusted in the project. */
  async trust({
    root,
    env,
    settings,
    now,
  }: ProjectPlace & { readonly settings: readonly PowerfulSetting[]; readonly now: Date }): Promise<TrustedProject> {
    const project: TrustedProject = {
      path: await followLinks(root),
      settings: settings.map(({ file, key, value, hash }) => ({ file: relative(root, file), key, value, hash })),
      trustedAt: now.toISOString(),
    };
    await changeTrusted(env, (all) => [...all.filter(({ path }) => path !== project.path), project]);
    return project;
  },

  /** Returns whether there was anything to revoke. */
  async revoke({ root, env }: ProjectPlace): Promise<boolean> {
    if ((await trustRecord.find({ root, env })) === undefined) return false;
    const revoked = await followLinks(root);
    await changeTrusted(env, (all) => all.filter(({ path }) => path !== revoked));
    return true;
  },
};

function trustFile(env: Environment): string {
  return join(stateDirectory(env), "trust.json");
}

const isTrustRecord = objectOf({
  projects: listOf(
    objectOf({
      path: isText,
      trustedAt: isText,
      settings: listOf(objectOf({ file: isText, key: isText, value: isText, hash: isText })),
    }),
  ),
});

async function changeTrusted(
  env: Environment,
  change: (projects: readonly TrustedProject[]) => readonly TrustedProject[],
): Promise<void> {
  const file = trustFile(env);
  await withLock(file, { env }, async () => {
    const projects = change(await trustRecord.read(env));
    const sorted = [...projects].sort((a, b) => (a.path < b.path ? -1 : 1));
    const bytes = Buffer.from(`${JSON.stringify({ projects: sorted }, null, 2)}\n`);
    makeDirectory(dirname(file), 0o700);
    await chmod(dirname(file), 0o700);
    await replaceOwnFile(file, bytes);
  });
}

// The owner of a `.plimsoll` folder. Another user's folder is not read, as git does not read another user's repository:
// anybody can put one into /tmp.

/** Throws if the directory or its `.plimsoll` belongs to another user, unless the environment, `plimsoll trust` or
 *  git's safe.directory accepts it. */
export async function refuseOtherOwner(directory: string, env: Environment): Promise<void> {
  const owner = await otherOwner(directory, env);
  if (owner === undefined || hasTrustVariable(env) || (await isAccepted(directory, env))) return;
  const path = join(directory, ".plimsoll");
  throw new ContextError("untrusted", `belongs to user ${owner}, not to you, so it is not read`, {
    file: path,
    hint: `If you trust it, run "plimsoll trust ${directory}", or name the directory in git's safe.directory.`,
  });
}

/** Returns the id of another user who owns a directory with a `.plimsoll`, or that folder. Root does not count as
 *  another user, and under sudo neither does the caller. */
export async function otherOwner(directory: string, env: Environment): Promise<number | undefined> {
  const own = process.geteuid?.();
  if (own === undefined) return undefined;
  const known = [own, 0, ...(own === 0 && env.SUDO_UID ? [Number(env.SUDO_UID)] : [])];
  const owners = await Promise.all([stat(directory), stat(join(directory, ".plimsoll"))]).catch(() => []);
  return owners.map(({ uid }) => uid).find((uid) => !known.includes(uid));
}

async function isAccepted(directory: string, env: Environment): Promise<boolean> {
  if ((await trustRecord.find({ root: directory, env })) !== undefined) return true;
  // Reads the system's and the user's git configuration: a repository must not decide this.
  const values: string[] = [];
  for (const scope of ["--system", "--global"]) {
    // Run in the root of the file system, where git finds no repository.
    const place = { root: "/", env, signal: AbortSignal.timeout(5_000) };
    const git = await startGit(place, ["config", scope, "-z", "--get-all", "safe.directory"], {
      variables: {},
      keptNames: /^GIT_CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)$/,
    });
    const listed = git === undefined ? "" : (await collectOutput(git.output)).toString("utf8");
    values.push(...listed.split("\0").slice(0, -1));
  }
  // Reads the values as git does: an empty value clears those before it, `*` is every directory, and a path may
  // end with `/*`.
  const path = await followLinks(directory);
  return values.slice(values.lastIndexOf("") + 1).some((value) => {
    if (value === "*") return true;
    const named = resolve("/", value.replace(/^~(?=\/)/, homeDirectory(env)));
    return named.endsWith("/*") ? path.startsWith(named.slice(0, -1)) : path === named;
  });
}

type CallPlace = Pick<Caller, "cwd" | "env">;
type NotedCaller = CallPlace & { readonly output: Pick<Output, "note"> };

/** Throws if a setting is not trusted. `folder` is the argument for `plimsoll trust`. */
export function requireTrust(settings: readonly PowerfulSetting[], place: CallPlace, folder?: string): void {
  const [first, ...rest] = settings;
  if (first === undefined) return;
  const lines = rest.map((setting) => `${formatPlace(setting, place)}: ${described(setting)}`);
  const command = folder === undefined ? "plimsoll trust" : `plimsoll trust ${quoted(folder)}`;
  throw new ContextError("untrusted", [`${described(first)}. You have not trusted this project`, ...lines].join("\n"), {
    file: shownPath(first.file, place.cwd, place.env),
    line: first.line,
    hint: `Run "${command}" to see and trust its settings, or add --trust to trust them in this run.`,
  });
}

function described({ key, value, target }: PowerfulSetting): string {
  const shown = printable(value);
  const where = target === undefined || target === value ? "" : ` (that is ${printable(target)})`;
  return `the project sets ${key} to ${/^[[{]/.test(shown) ? shown : `"${shown}"`}${where}`;
}

/** Quotes a word for a shell. */
function quoted(word: string): string {
  return /^[\w./+:@%,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

function formatPlace({ file, line }: PowerfulSetting, { cwd, env }: CallPlace): string {
  return `${printable(shownPath(file, cwd, env))}:${line}`;
}

/** Prints one note with the settings that are left out, or only with those of `key`. */
export function noteLeftOut(leftOut: readonly PowerfulSetting[], call: NotedCaller, key?: string): void {
  const settings = leftOut.filter((setting) => key === undefined || setting.key === key);
  if (settings.length === 0) return;
  const named = settings.map((setting) => `${setting.key} (${formatPlace(setting, call)})`).join(", ");
  call.output.note(
    `left out, because this project is not trusted: ${named}. Run "plimsoll trust" to see and trust its settings.`,
  );
}

/** Prints a note that the project's store setting is ignored. */
export function noteIgnoredStore({ ignoredStore }: LoadedConfig, { cwd, env, output }: NotedCaller): void {
  if (ignoredStore === undefined) return;
  const { file, line } = ignoredStore;
  const own = shownPath(join(configDirectory(env), "config.yaml"), cwd, env);
  output.note(
    `${printable(file)}:${line}: store is left out: a project cannot choose where state goes. Set it in ${printable(own)}, with --store or with PLIMSOLL_STORE.`,
  );
}
