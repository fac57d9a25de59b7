/** Scans a project: its manifests, its files, and the texts for people and agents who work in it. Writes nothing,
 *  follows no link out of the project, and returns the same scan for the same files on every machine. */

import type { Dirent } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import {
  createSecretTest,
  importedNames,
  isSecretName,
  type SecretRules,
  type SecretTest,
} from "../../core/text/index.ts";
import type { Environment } from "../directories.ts";
import type { IgnoreRules } from "../files/ignore-rules.ts";
import { isGitInternal, isInside } from "../files/paths.ts";
import { readForeignText } from "../files/read-foreign.ts";
import { openDirectory, systemReason, type Unread } from "../files/read-text.ts";
import { decodeBytes, splitRecords } from "../processes/byte-records.ts";
import { readGit } from "../processes/read-git.ts";
import { gitReason } from "../processes/start-git.ts";
import { describeProject } from "./project-facts.ts";

export interface ScanOptions {
  /** Used to find git. @default process.env */
  readonly env?: Environment | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Corrects which files count as secrets. Their texts are not read. */
  readonly secrets?: SecretRules | undefined;
  /** Receives the number of paths found so far. */
  onProgress?(paths: number): void;
}

/** Throws if the directory cannot be listed. Other mistakes are in `problems`. */
export async function scanFolder(directory: string, options: ScanOptions = {}): Promise<ProjectScan> {
  const root = await openDirectory(directory);
  const isSecret = createSecretTest(options.secrets);
  const [list, conventions] = await Promise.all([listProject(root, options), readConventions(root, isSecret)]);
  const facts = await describeProject(root, list.paths);
  return {
    facts,
    paths: list.paths,
    conventions: conventions.files,
    problems: [...list.problems, ...conventions.problems],
  };
}

/** Reads the texts for people and agents who work in a project. Each text occurs once, whatever links, imports and
 *  copies lead to it. */
export async function readConventions(
  root: string,
  isSecret: SecretTest = isSecretName,
): Promise<Pick<Found, "files" | "problems">> {
  // The files that apply to the whole project, in this order: the file that most agents read, files of one agent,
  // files for people. Rules that are loaded on demand (.cursor/rules) and a person's own file (CLAUDE.local.md)
  // are not included. Letter case does not matter.
  const conventionNames: readonly string[] = [
    "AGENTS.md",
    "CLAUDE.md",
    ".claude/CLAUDE.md",
    "GEMINI.md",
    ".github/copilot-instructions.md",
    ".cursorrules",
    ".windsurfrules",
    "CONTRIBUTING.md",
    ".github/CONTRIBUTING.md",
    "docs/CONTRIBUTING.md",
  ];
  // In these files `@path` imports a file.
  const importing = /(^|\/)(claude|gemini)\.md$/i;
  // The limit of Claude Code and Gemini CLI.
  const maxHops = 5;
  const found: Found = { root: await realpath(root), isSecret, seen: new Set(), files: [], problems: [] };
  for (const name of conventionNames) {
    // Returns the name as the file is really spelled.
    const folder = dirname(name);
    const names = (await readdir(join(found.root, folder)).catch(() => [])).sort();
    const wanted = name.slice(folder === "." ? 0 : folder.length + 1);
    const spelled = names.find((each) => each.toLowerCase() === wanted.toLowerCase());
    const path = names.includes(wanted) ? name : spelled && join(folder, spelled);
    if (path !== undefined) await addFile(path, importing.test(path) ? maxHops : 0, found);
  }
  // Many tools write one text into several files. Of two equal texts the first is kept. If one text contains
  // another, the longer is kept.
  const texts = found.files.map(({ text }) => text.replace(/\r\n/g, "\n").trim());
  return {
    files: found.files.filter((_, index) => {
      const own = texts[index]!;
      return (
        own !== "" && !texts.some((other, at) => at !== index && other.includes(own) && (other !== own || at < index))
      );
    }),
    problems: found.problems,
  };
}

interface Found {
  readonly root: string;
  readonly isSecret: SecretTest;
  /** Real paths. */
  readonly seen: Set<string>;
  readonly files: ConventionsFile[];
  readonly problems: ScanProblem[];
}

/** Adds a file and, `hops` deep, its imports. */
async function addFile(path: string, hops: number, found: Found): Promise<void> {
  const real = await realpath(join(found.root, path)).catch(() => undefined);
  if (real === undefined || found.seen.has(real)) return;
  found.seen.add(real);
  const text = await readInside(path, real, found);
  if (text === undefined) return;
  const imports = hops > 0 ? await findImports(text, real, found) : [];
  const lines = text.replace(/^\uFEFF/, "").split("\n");
  const isOnlyImports = imports.length > 0 && lines.every((line) => /^(@\S+)?$/.test(line.trim()));
  if (!isOnlyImports) found.files.push({ path, text });
  for (const each of imports) await addFile(each, hops - 1, found);
}

async function readInside(
  path: string,
  real: string,
  { root, isSecret, problems }: Found,
): Promise<string | undefined> {
  if (!isInside(real, root)) {
    problems.push({ path, reason: "is a link out of the project, which is not followed" });
    return undefined;
  }
  const target = relative(root, real).split(sep).join("/");
  if (isGitInternal(target) || isSecret(path) || isSecret(target)) {
    problems.push({
      path,
      reason: `is not read: ${target} ${isGitInternal(target) ? "belongs to git" : "usually holds secrets"}`,
    });
    return undefined;
  }
  // Some tools use a folder of rules with the same name.
  if ((await stat(real).catch(() => undefined))?.isDirectory()) return undefined;
  const read = readForeignText(real, { within: root });
  if ("text" in read) return read.text;
  problems.push({ path, reason: read.reason });
  return undefined;
}

/** Returns the Markdown files of the project that a text imports. An agent can read other files itself. */
async function findImports(text: string, file: string, { root }: Found): Promise<string[]> {
  const paths: string[] = [];
  for (const name of importedNames(text)) {
    const path = join(dirname(file), name);
    if (!/\.md$/i.test(name) || name.startsWith("~") || !isInside(path, root)) continue;
    if ((await stat(path).catch(() => undefined))?.isFile()) paths.push(relative(root, path).split(sep).join("/"));
  }
  return paths;
}

/** Lists the paths of a project as somebody who works there sees it: existing tracked files, and files that git would
 *  track. Without git, a walk finds the same. */
async function listProject(root: string, options: ScanOptions): Promise<Pick<ProjectScan, "paths" | "problems">> {
  const listed = await listByGit(root, options);
  if ("paths" in listed && listed.paths.length > 0) return { ...listed, problems: [] };
  // Git lists nothing below a directory that it ignores. This directory was named on purpose.
  const { files, skipped } = await listFiles(root);
  options.signal?.throwIfAborted();
  const within = (path: string) => relative(root, path).split(sep).join("/");
  const closed = skipped.filter(({ kind }) => kind === "failed");
  const special = skipped.filter(({ kind }) => kind !== "failed");
  const paths = [...files, ...special.map(({ path }) => path)].map(within);
  options.onProgress?.(paths.length);
  const problems = closed.map(({ path, reason }) => ({ path: within(path), reason }));
  return {
    paths: [...paths, ...problems.map(({ path }) => `${path}/`)],
    problems: "reason" in listed ? [{ path: ".", reason: listed.reason }, ...problems] : problems,
  };
}

async function listByGit(
  root: string,
  { env = process.env, signal, onProgress }: ScanOptions,
): Promise<{ readonly paths: string[] } | { readonly reason: string }> {
  // The letters of `-t` mean: `?` not tracked, `S` not checked out, `R` tracked but missing. A person's global
  // excludes are not read.
  const listing = "ls-files -z -t --stage --cached --others --deleted --exclude-standard -- .".split(" ");
  const place = { root, env, signal: signal ?? new AbortController().signal };
  const git = await readGit(place, listing, ["core.excludesFile="]);
  if ("refused" in git) {
    signal?.throwIfAborted();
    // A folder outside a repository lacks nothing.
    if (git.refused === "no_repository") return { paths: [] };
    if (git.refused === "no_git") return { reason: "listed without git, because git is not on PATH" };
    return { reason: `listed without git: ${git.reason.slice(0, 300)}` };
  }
  const records: string[] = [];
  for await (const batch of splitRecords(git.output, "\0")) {
    for (const record of batch) records.push(record);
    onProgress?.(records.length);
  }
  const { code, stderr } = await git.end;
  signal?.throwIfAborted();
  if (code === 0) return { paths: parsePaths(records) };
  return { reason: `listed without git: ${gitReason(stderr).slice(0, 300)}` };
}

function parsePaths(records: readonly string[]): string[] {
  const removed = new Set(records.filter((record) => record.startsWith("R ")).map(nameIn));
  const paths: string[] = [];
  let last: string | undefined;
  for (const record of records) {
    const name = nameIn(record);
    // A file in conflict is listed once for each of its versions.
    if (name === last || !/^[^RS] /.test(record) || removed.has(name)) continue;
    last = name;
    // A submodule is a folder with unknown contents. A repository that git does not track already ends with a slash.
    paths.push(record.startsWith("160000 ", 2) ? `${decodeBytes(name)}/` : decodeBytes(name));
  }
  return paths;
}

/** `H 100644 <hash> 0<tab>name` or `? name`. */
function nameIn(record: string): string {
  return record.startsWith("?") ? record.slice(2) : record.slice(record.indexOf("\t") + 1);
}

/** The files below a directory that git does not ignore. */
interface FileList {
  files: string[];
  skipped: (Unread & { path: string })[];
}

/** Returns absolute paths in a fixed order. Never follows links, so a tree has no loops and no file counts twice. */
export async function listFiles(directory: string): Promise<FileList> {
  const list: FileList = { files: [], skipped: [] };
  // Most commands list nothing, and start faster without this library.
  const { openIgnoreRules } = await import("../files/ignore-rules.ts");
  const pending = [{ directory, rules: await openIgnoreRules(directory) }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    let entries: Dirent[] = [];
    try {
      entries = await readdir(next.directory, { withFileTypes: true });
    } catch (error) {
      list.skipped.push({ path: next.directory, reason: systemReason(error), kind: "failed" });
    }
    const directories = sortEntries(entries, { ...next, list });
    for (const child of directories.reverse()) pending.push({ directory: child, rules: await next.rules.enter(child) });
  }
  return list;
}

/** Adds files and skipped entries to the list, and returns the directories to visit next. */
function sortEntries(
  entries: readonly Dirent[],
  { directory, rules, list }: { readonly directory: string; readonly rules: IgnoreRules; readonly list: FileList },
): string[] {
  const directories: string[] = [];
  const sorted = [...entries].sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of sorted) {
    const path = join(directory, entry.name);
    if (rules.ignores(path, entry.isDirectory() ? "directory" : "file")) continue;
    if (entry.isDirectory()) directories.push(path);
    else if (entry.isFile()) list.files.push(path);
    else
      list.skipped.push({
        path,
        kind: "special",
        reason: entry.isSymbolicLink() ? "symbolic link" : "not a file",
      });
  }
  return directories;
}

/** What a scan found in a project. `renderSnapshot` needs nothing else. */
export interface ProjectScan {
  /** What the manifests of the project say, in the order to show it: `Module`, `Language`, … */
  readonly facts: readonly { readonly name: string; readonly value: string }[];
  /**
   * Every file once, relative to the project, with slashes, in any order. A path that ends with a slash is a folder
   * whose content is unknown: another repository, or one that cannot be read.
   */
  readonly paths: readonly string[];
  /** Files that people wrote for those who work in the project, the most important one first. */
  readonly conventions: readonly ConventionsFile[];
  /** What could not be read, and why. Snapshots leave it out, so that they do not depend on who took them. */
  readonly problems: readonly ScanProblem[];
}

export interface ConventionsFile {
  readonly path: string;
  readonly text: string;
}

export interface ScanProblem {
  /** Relative path, "." for the project itself. */
  readonly path: string;
  readonly reason: string;
}
