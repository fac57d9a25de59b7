/** The record of what a person has trusted: for each project, its real path and the hashes of its powerful settings. It lies in the
 *  user's state directory, so that no repository can bring its own. */
import { createHash } from "node:crypto";
import { chmod, mkdir } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { ContextError } from "../../errors.ts";
import { type Environment, stateDirectory } from "../directories.ts";
import { withLock } from "../files/lock.ts";
import { readRegularText } from "../files/read-regular-file.ts";
import { removeStaleTemporaries, replaceFile, stateOf } from "../files/replace-file.ts";
import { followLinks } from "../files/resolve-target.ts";
import { exists } from "../files/upward.ts";
import { shownSource } from "../sync/company-source.ts";

/** A setting of a project that could start a program, read outside of the root, reach the network or change what things cost. */
export interface PowerfulSetting {
  /** Absolute. */
  readonly file: string;
  readonly line: number;
  readonly key: string;
  /** For people: without passwords. */
  readonly value: string;
  /** Where a value that names a directory really leads, links followed. */
  readonly target?: string | undefined;
  /** Of the file's name, the key, the whole value and where it leads. The line is not in it: lines move. */
  readonly hash: string;
}

export interface TrustedProject {
  /** Links followed. */
  readonly path: string;
  readonly settings: readonly TrustedSetting[];
  /** ISO 8601. */
  readonly trustedAt: string;
}

export interface TrustedSetting {
  /** Relative to the project's path. */
  readonly file: string;
  readonly key: string;
  readonly value: string;
  readonly hash: string;
}

export interface ProjectPlace {
  /** The project's root. */
  readonly root: string;
  readonly env: Environment;
}

export interface SettingSource extends Pick<PowerfulSetting, "file" | "line" | "key" | "target"> {
  readonly root: string;
  readonly value: unknown;
}

export function powerfulSetting(source: SettingSource): PowerfulSetting {
  const { root, file, line, key, value, target } = source;
  const parts = JSON.stringify([relative(root, file), key, value, target ?? null]);
  const hash = createHash("sha256").update(parts).digest("hex");
  const written = typeof value === "string" ? value : JSON.stringify(value);
  return { file, line, key, value: shownSource(written), target, hash };
}

/** Those that nobody has trusted with the value that they have now. Reads the record only if there is one to ask about. */
export async function untrustedOf(
  settings: readonly PowerfulSetting[],
  { root, env }: ProjectPlace,
): Promise<readonly PowerfulSetting[]> {
  if (settings.length === 0 || hasTrustVariable(env)) return [];
  const project = await trustedProject({ root, env });
  const known = new Set(project?.settings.map(({ hash }) => hash));
  return settings.filter(({ hash }) => !known.has(hash));
}

/** Whether the environment trusts every project, as CI does that runs its own. */
export function hasTrustVariable(env: Environment): boolean {
  return env.PLIMSOLL_TRUST === "1";
}

/** What was trusted of this project, if anything. */
export async function trustedProject({ root, env }: ProjectPlace): Promise<TrustedProject | undefined> {
  const path = await followLinks(root);
  return (await readTrusted(env)).find((project) => project.path === path);
}

export interface TrustOptions extends ProjectPlace {
  readonly settings: readonly PowerfulSetting[];
  readonly now: Date;
}

/** Records these settings as all that the project is trusted with. */
export async function trustProject({ root, env, settings, now }: TrustOptions): Promise<TrustedProject> {
  const project: TrustedProject = {
    path: await followLinks(root),
    settings: settings.map(({ file, key, value, hash }) => ({
      file: relative(root, file),
      key,
      value,
      hash,
    })),
    trustedAt: now.toISOString(),
  };
  await changeTrusted(env, (all) => [...all.filter(({ path }) => path !== project.path), project]);
  return project;
}

/** Says whether there was anything to take away. */
export async function revokeTrust({ root, env }: ProjectPlace): Promise<boolean> {
  if ((await trustedProject({ root, env })) === undefined) return false;
  const revoked = await followLinks(root);
  await changeTrusted(env, (all) => all.filter(({ path }) => path !== revoked));
  return true;
}

/** By path. */
export async function readTrusted(env: Environment): Promise<readonly TrustedProject[]> {
  const file = trustFile(env);
  if (!(await exists(file))) return [];
  const read = await readRegularText(file);
  if (!("text" in read)) throw new ContextError("unreadable_input", read.reason, { file });
  const projects = parseRecord(read.text);
  if (projects !== undefined) return projects;
  throw new ContextError("store_corrupt", "the record of trusted projects is damaged", {
    file,
    hint: 'Delete it, and run "plimsoll trust" again in the projects that you trust.',
  });
}

function trustFile(env: Environment): string {
  return join(stateDirectory(env), "trust.json");
}

function parseRecord(text: string): readonly TrustedProject[] | undefined {
  try {
    const { projects } = JSON.parse(text) as { projects?: unknown };
    return Array.isArray(projects) && projects.every(isProject) ? projects : undefined;
  } catch {
    return undefined;
  }
}

function isProject(value: unknown): value is TrustedProject {
  const { path, trustedAt, settings } = Object(value) as Partial<TrustedProject>;
  return areTexts(path, trustedAt) && Array.isArray(settings) && settings.every(isSetting);
}

function isSetting(value: unknown): value is TrustedSetting {
  const { file, key, value: shown, hash } = Object(value) as Partial<TrustedSetting>;
  return areTexts(file, key, shown, hash);
}

function areTexts(...values: readonly unknown[]): boolean {
  return values.every((value) => typeof value === "string");
}

async function changeTrusted(
  env: Environment,
  change: (projects: readonly TrustedProject[]) => readonly TrustedProject[],
): Promise<void> {
  const file = trustFile(env);
  await withLock(file, { env }, async () => {
    const projects = change(await readTrusted(env));
    const sorted = [...projects].sort((a, b) => (a.path < b.path ? -1 : 1));
    const bytes = Buffer.from(`${JSON.stringify({ projects: sorted }, null, 2)}\n`);
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await chmod(dirname(file), 0o700);
    await removeStaleTemporaries(file);
    await replaceFile(file, { bytes, expected: await stateOf(file), isPrivate: true });
  });
}
