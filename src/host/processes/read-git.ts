/** Runs git on untrusted repositories. Nothing in a repository, including its own configuration, can choose a program,
 *  a server, or a work tree without the root. */

import { isUtf8 } from "node:buffer";
import { readdir, realpath } from "node:fs/promises";
import { isAbsolute, join, relative, resolve } from "node:path";
import { isSecretName } from "../../core/text/index.ts";
import { type Environment, homeDirectory } from "../directories.ts";
import { exists, isInside } from "../files/paths.ts";
import { decodeBytes, splitRecords } from "./byte-records.ts";
import { type Asked, createFileMemory } from "./file-memory.ts";
import { type GitRefusal, type GitRepository, type GitSetting, inspectRepository } from "./inspect-repository.ts";
import { collectOutput, findProgram, type GitPlace, noGitReason, reading, startGit } from "./start-git.ts";
import type { StartedProcess } from "./start-process.ts";

export interface GitProcess extends StartedProcess {
  /** Filters that the configuration defines. None of them was run. */
  readonly filters: ReadonlySet<string>;
  /** Sentences on what git was not allowed to read. */
  readonly notes: readonly string[];
}

/** Starts a command that only reads. Paths in `args` are literal, even `:(top)` and `*`. Put `--` before them. */
export async function readGit(
  place: GitPlace,
  args: readonly string[],
  settings: readonly string[] = [],
): Promise<GitProcess | GitRefusal> {
  const repository = await inspectRepository(place);
  if ("refused" in repository) return repository;
  const [command = "", ...rest] = args;
  if (command === "blame") {
    const reason = await foreignRevisions(repository, place.env);
    if (reason !== undefined) return { refused: "unsafe", reason };
  }
  const isEntered = enters.has(command) && !rest.includes("--cached");
  const nested = isEntered ? await inspectSubmodules(place, { repository, args }) : nothingNested;
  const used = [...repository.settings, ...nested.settings];
  const { variables, filters, problem } = settingOverrides(used);
  if (problem !== undefined) return { refused: "unsafe", reason: problem };
  const flags = [
    ...(safeFlags[command] ?? []),
    ...(enters.has(command) ? [`--ignore-submodules=${nested.notes.length > 0 ? "dirty" : "none"}`] : []),
  ];
  const use = { ...reading, settings: [...(reading.settings ?? []), ...settings] };
  const started = await startGit(place, [command, ...flags, ...rest], {
    ...use,
    variables: { ...use.variables, ...variables },
  });
  return started === undefined
    ? { refused: "no_git", reason: noGitReason }
    : { ...started, filters, notes: nested.notes };
}

export interface GitResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command that changes a repository. Runs no hook, filter, merge driver, editor or program that signs, and
 *  contacts no server. Reads the settings again each time, because an agent may have changed them. `indexFile` is used
 *  in place of the repository's own index. */
export async function changeGit(
  place: GitPlace,
  args: readonly string[],
  { indexFile }: { readonly indexFile?: string | undefined } = {},
): Promise<GitResult | GitRefusal> {
  const program = await findProgram("git", place.env);
  const fresh = { ...place, signal: AbortSignal.any([place.signal]) };
  const repository = await inspectRepository(fresh, { again: true });
  if (program === undefined) return { refused: "no_git", reason: noGitReason };
  if ("refused" in repository) return repository;
  const [command = "", ...rest] = args;
  const isEntered = (enters.has(command) && !rest.includes("--cached")) || command === "add";
  const nested = isEntered ? await inspectSubmodules(fresh, { repository, args: ["--"] }) : nothingNested;
  // The command of git's own merge of text, in place of any program that the repository names.
  const { variables, problem } = settingOverrides(
    [...repository.settings, ...nested.settings],
    `'${program.replaceAll("'", "'\\''")}' merge-file --marker-size=%L %A %O %B`,
  );
  const reason = problem ?? hiddenSettings(repository) ?? (command === "add" ? nested.notes[0] : undefined);
  if (reason !== undefined) return { refused: "unsafe", reason };
  const hasName = repository.settings.some(({ key }) => key === "user.email");
  const flags = isEntered && command !== "add" && nested.notes.length > 0 ? ["--ignore-submodules=dirty"] : [];
  const started = await startGit(fresh, [command, ...flags, ...rest], {
    ...reading,
    settings: [
      ...(reading.settings ?? []),
      ...["merge.default=text", "gc.auto=0", "maintenance.auto=false"],
      // Git would write the shared part of another index beside the repository's own, and delete that one when it is old.
      ...(indexFile === undefined ? [] : ["core.splitIndex=false"]),
    ],
    variables: {
      ...reading.variables,
      GIT_OPTIONAL_LOCKS: "1",
      ...(hasName ? {} : ownName),
      ...variables,
      ...(indexFile !== undefined && { GIT_INDEX_FILE: indexFile }),
    },
  });
  if (started === undefined) return { refused: "no_git", reason: noGitReason };
  const stdout = (await collectOutput(started.output)).toString("utf8");
  return { ...(await started.end), stdout };
}

/** A new worktree has another folder and another branch, so git may read settings there that nobody has looked at. */
function hiddenSettings({ settings }: GitRepository): string | undefined {
  const hidden = settings.find(({ isOwn, key }) => isOwn && key.startsWith("includeif."));
  return hidden && `its settings include a file under a condition (${JSON.stringify(decodeBytes(hidden.key))})`;
}

/** Who commits if the user has told git no name. */
const ownName: Environment = {
  GIT_AUTHOR_NAME: "Plimsoll",
  GIT_AUTHOR_EMAIL: "plimsoll@localhost",
  GIT_COMMITTER_NAME: "Plimsoll",
  GIT_COMMITTER_EMAIL: "plimsoll@localhost",
};

/** Commands for which git reads the work trees of submodules, with their settings. */
const enters: ReadonlySet<string> = new Set(["status", "diff"]);

interface Nested {
  readonly settings: readonly GitSetting[];
  /** Why a submodule is not read. */
  readonly notes: readonly string[];
}

const nothingNested: Nested = { settings: [], notes: [] };

/** Each submodule needs two programs. Further submodules are shown as commits only. */
const maxSubmodules = 50;

interface Outer {
  readonly repository: GitRepository;
  /** The command's arguments. Paths follow after `--`. */
  readonly args: readonly string[];
}

async function inspectSubmodules(
  place: GitPlace,
  { repository: outer, args }: Outer,
  left: { count: number } = { count: maxSubmodules },
): Promise<Nested> {
  const found: { settings: GitSetting[]; notes: string[] } = { settings: [], notes: [] };
  const paths = args.slice(args.indexOf("--"));
  const key = JSON.stringify([place.root, outer.gitDirectory, place.env, paths]);
  for (const path of await submodules(key, () => listSubmodules(place, { repository: outer, args: paths }))) {
    const root = join(place.root, path);
    if (!(await exists(join(root, ".git")))) continue;
    if (left.count-- <= 0) {
      found.notes.push(`Changes inside submodules are not shown: there are more than ${maxSubmodules}.`);
      return found;
    }
    const inner = { ...place, root };
    const repository = await inspectRepository(inner);
    if ("refused" in repository) {
      const shown = JSON.stringify(path);
      found.notes.push(`Changes inside the submodule ${shown} are not shown: ${repository.reason}.`);
      continue;
    }
    const below = await inspectSubmodules(inner, { repository, args: ["--"] }, left);
    found.settings.push(...repository.settings, ...below.settings);
    found.notes.push(...below.notes);
  }
  return found;
}

/** Listing a large index takes as long as many commands. */
const submodules = createFileMemory<readonly string[]>();

async function listSubmodules(place: GitPlace, { repository, args }: Outer): Promise<Asked<readonly string[]>> {
  const { gitDirectory } = repository;
  const git = await startGit(place, ["ls-files", "--stage", "-z", ...args], reading);
  const answer: string[] = [];
  if (git === undefined) return { answer };
  for await (const batch of splitRecords(git.output, "\0")) {
    for (const record of batch) {
      // `MODE HASH STAGE TAB NAME`. The mode identifies a submodule.
      if (record.startsWith("160000 ")) answer.push(decodeBytes(record.slice(record.indexOf("\t") + 1)));
    }
  }
  const isWhole = (await git.end).code === 0 && !place.signal.aborted;
  // The index may be split over several files.
  const isSplit = (await readdir(gitDirectory)).some((name) => name.startsWith("sharedindex."));
  return { answer, files: isWhole && !isSplit ? [join(gitDirectory, "index")] : undefined };
}

/** git blame prints lines of the file in this setting if they are not commits. Another setting cannot replace it, since
 *  values add up. */
async function foreignRevisions({ settings, toplevel }: GitRepository, env: Environment): Promise<string | undefined> {
  for (const { isOwn, key, value } of settings) {
    if (key !== "blame.ignorerevsfile" || value === "") continue;
    const named = decodeBytes(value).replace(/^~(?=\/)/, homeDirectory(env));
    if (!isOwn && isAbsolute(named)) continue;
    const real = await realpath(resolve(toplevel, named)).catch(() => undefined);
    if (real === undefined || (isInside(real, toplevel) && !isSecretName(relative(toplevel, real)))) continue;
    return "blame.ignoreRevsFile names a file that may not be read";
  }
  return undefined;
}

/** Turns off programs that convert files to text. Blame has none for whole diffs. */
const safeFlags: Readonly<Record<string, readonly string[]>> = {
  diff: ["--no-ext-diff", "--no-textconv"],
  log: ["--no-ext-diff", "--no-textconv"],
  show: ["--no-ext-diff", "--no-textconv"],
  blame: ["--no-textconv"],
};

// Settings that are dangerous only under certain names, and their overrides.

/** Turns off every filter and hook, whoever defined it: the repository's attributes choose the files for a filter, and
 *  the program of git-lfs, for example, is a setting too. Also turns off rule files that the repository, not the user,
 *  chose. Returns environment variables, which unlike arguments allow a name with any character; the names of the filters
 *  that are not run; and a setting that cannot be overridden. */
function settingOverrides(settings: readonly GitSetting[], mergeDriver = "false") {
  const ownFiles: ReadonlySet<string> = new Set(["core.attributesfile", "core.excludesfile"]);
  const named = (pattern: RegExp) => new Set(settings.flatMap(({ key }) => pattern.exec(key)?.[1] ?? []));
  const names = named(/^filter\.(.*)\.[^.]*$/s);
  const drivers = named(/^merge\.(.*)\.driver$/s);
  const hooks = named(/^hook\.(.*)\.[^.]*$/s);
  const files = settings.filter(({ isOwn, key }) => isOwn && ownFiles.has(key));
  const values = files.map(({ key }): [string, string] => [key, "/dev/null"]);
  for (const name of names) {
    for (const command of ["clean", "smudge", "process"]) values.push([`filter.${name}.${command}`, ""]);
    values.push([`filter.${name}.required`, "false"]);
  }
  for (const name of drivers) values.push([`merge.${name}.driver`, mergeDriver]);
  // Since git 2.54 a hook can be a setting, which core.hooksPath does not turn off.
  for (const name of hooks) values.push([`hook.${name}.enabled`, "false"]);
  const filters = new Set([...names].map((name) => Buffer.from(name, "latin1").toString("utf8")));
  // An environment variable cannot hold such a name.
  if (![...names, ...drivers, ...hooks].every((name) => isUtf8(Buffer.from(name, "latin1")))) {
    return { variables: {}, filters, problem: "the name of a filter or hook in its settings is not UTF-8" };
  }
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(values.length) };
  for (const [index, [key, value]] of values.entries()) {
    variables[`GIT_CONFIG_KEY_${index}`] = Buffer.from(key, "latin1").toString("utf8");
    variables[`GIT_CONFIG_VALUE_${index}`] = value;
  }
  return { variables, filters };
}
