/** Runs git on repositories that nobody vouches for. Nothing that a repository contains, its own configuration included, chooses a
 *  program, a server, or a work tree that does not hold the root. */
import { realpath } from "node:fs/promises";
import { isAbsolute, join, resolve, sep } from "node:path";
import { isSecretName } from "../../text/index.ts";
import { type Environment, homeDirectory } from "../directories.ts";
import { isInside } from "../files/resolve-target.ts";
import { exists } from "../files/upward.ts";
import { findProgram } from "./find-program.ts";
import { foreignGitDirectory, isShallowClone } from "./git-directory.ts";
import { type GitSetting, parseSettings, settingOverrides } from "./git-settings.ts";
import { decodeBytes, splitRecords } from "./output-records.ts";
import type { StartedProcess } from "./start-process.ts";

export interface GitPlace {
  readonly root: string;
  readonly env: Environment;
  /** Ends git. */
  readonly signal: AbortSignal;
}

/** Why git was not run. */
export interface GitRefusal {
  readonly refused: "no_git" | "no_repository" | "owner" | "unsafe" | "failed" | "ended";
  /** Continues a sentence about the repository. */
  readonly reason: string;
}

export interface GitProcess extends StartedProcess {
  /** Filters that the configuration defines. None of them was run. */
  readonly filters: ReadonlySet<string>;
  /** Sentences on what git was not allowed to look at. */
  readonly notes: readonly string[];
}

/** Starts a command that only reads. Paths in `args` stand for themselves, also `:(top)` and `*`. Put `--` before them. */
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
  const nested = isEntered ? await inspectSubmodules(place, args) : nothingNested;
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
  return started === undefined ? noGit : { ...started, filters, notes: nested.notes };
}

/** What is known of a repository before git reads it. */
export interface GitRepository {
  readonly toplevel: string;
  /** Where the root lies in the work tree: "" or with a slash at its end. */
  readonly prefix: string;
  /** History ends where the clone was cut off. */
  readonly isShallow: boolean;
  /** From every file that git reads them from. */
  readonly settings: readonly GitSetting[];
}

/** Asks git where the root lies, and with which settings. Once for each call that a signal stands for. */
export function inspectRepository(place: GitPlace): Promise<GitRepository | GitRefusal> {
  const known = inspected.get(place.signal) ?? new Map<string, Promise<GitRepository | GitRefusal>>();
  inspected.set(place.signal, known);
  const answer = known.get(place.root) ?? inspect(place);
  known.set(place.root, answer);
  return answer;
}

const inspected = new WeakMap<AbortSignal, Map<string, Promise<GitRepository | GitRefusal>>>();

const noGit: GitRefusal = { refused: "no_git", reason: "git is not installed, or not on PATH" };

async function inspect(place: GitPlace): Promise<GitRepository | GitRefusal> {
  const [placed, configured] = await Promise.all([
    gitBytes(place, ["rev-parse", ...questions]),
    gitBytes(place, ["config", "--list", "-z", "--show-scope"]),
  ]);
  if ("refused" in placed) return placed;
  if ("refused" in configured) return configured;
  const [inside, up = "", ...lines] = placed.bytes.toString("utf8").split("\n");
  if (inside === "false") {
    return { refused: "unsafe", reason: "its work tree does not hold this folder (core.worktree)" };
  }
  if (inside !== "true") return { refused: "failed", reason: "git did not say where its work tree is" };
  const settings = parseSettings(configured.bytes.toString("latin1"));
  const root = await realpath(place.root);
  const depth = up.split("/").length - 1;
  const toplevel = resolve(root, up);
  const prefix = depth === 0 ? "" : `${root.split(sep).slice(-depth).join("/")}/`;
  const gitDirectory = lines.slice(0, -1).join("\n");
  const pointsBack = settings.some(({ scope, key }) => isOwn(scope) && key === "core.worktree");
  const reason = isNamedSafe(settings, toplevel)
    ? undefined
    : await foreignGitDirectory({ toplevel, gitDirectory, pointsBack });
  if (reason !== undefined) return { refused: "unsafe", reason };
  return { toplevel, prefix, isShallow: await isShallowClone(gitDirectory), settings };
}

/** All but the last answer have no line break in them, whatever the folder is called. */
const questions = ["--is-inside-work-tree", "--show-cdup", "--absolute-git-dir"];

/** Whether a setting comes from the repository itself. */
function isOwn(scope: string): boolean {
  return scope === "local" || scope === "worktree";
}

/** A person has said of this very folder that git may use it. `*` says nothing about it. */
function isNamedSafe(settings: readonly GitSetting[], toplevel: string): boolean {
  return settings.some(
    ({ scope, key, value }) => !isOwn(scope) && key === "safe.directory" && decodeBytes(value) === toplevel,
  );
}

async function gitBytes(place: GitPlace, args: readonly string[]): Promise<{ bytes: Buffer } | GitRefusal> {
  const git = await startGit(place, args, reading);
  if (git === undefined) return noGit;
  const chunks: Buffer[] = [];
  for await (const chunk of git.output) chunks.push(chunk);
  const { code, stderr } = await git.end;
  if (place.signal.aborted) return { refused: "ended", reason: "git was ended" };
  return code === 0 ? { bytes: Buffer.concat(chunks) } : refusalOf(stderr);
}

function refusalOf(stderr: string): GitRefusal {
  if (/not a git repository|cannot use bare repository|must be run in a work tree/i.test(stderr)) {
    return { refused: "no_repository", reason: "the folder is in no git repository" };
  }
  if (/dubious ownership/i.test(stderr)) {
    return { refused: "owner", reason: "git does not trust this repository: it belongs to another user" };
  }
  return { refused: "failed", reason: gitReason(stderr) };
}

/** Commands for which git looks into the work trees of submodules, with the settings that it finds there. */
const enters: ReadonlySet<string> = new Set(["status", "diff"]);

interface Nested {
  readonly settings: readonly GitSetting[];
  /** Why a submodule is not to be looked into. */
  readonly notes: readonly string[];
}

const nothingNested: Nested = { settings: [], notes: [] };

/** Each takes two programs to look at. More of them are seen as commits only. */
const mostSubmodules = 50;

async function inspectSubmodules(
  place: GitPlace,
  args: readonly string[],
  left = { count: mostSubmodules },
): Promise<Nested> {
  const found: { settings: GitSetting[]; notes: string[] } = { settings: [], notes: [] };
  for (const path of await submodulesBelow(place, args.slice(args.indexOf("--")))) {
    const root = join(place.root, path);
    if (!(await exists(join(root, ".git")))) continue;
    if (left.count-- <= 0) {
      found.notes.push(`Changes inside of submodules are not shown: there are more than ${mostSubmodules}.`);
      return found;
    }
    const inner = { ...place, root };
    const repository = await inspectRepository(inner);
    if ("refused" in repository) {
      const shown = JSON.stringify(path);
      found.notes.push(`Changes inside of the submodule ${shown} are not shown: ${repository.reason}.`);
      continue;
    }
    const below = await inspectSubmodules(inner, ["--"], left);
    found.settings.push(...repository.settings, ...below.settings);
    found.notes.push(...below.notes);
  }
  return found;
}

async function submodulesBelow(place: GitPlace, paths: readonly string[]): Promise<string[]> {
  const git = await startGit(place, ["ls-files", "--stage", "-z", ...paths], reading);
  const found: string[] = [];
  if (git === undefined) return found;
  for await (const batch of splitRecords(git.output, "\0")) {
    for (const record of batch) {
      // `MODE HASH STAGE TAB NAME`; the mode tells a submodule.
      if (record.startsWith("160000 ")) found.push(decodeBytes(record.slice(record.indexOf("\t") + 1)));
    }
  }
  return found;
}

/** git blame prints lines of the file that this setting names when they are no commits. No other setting takes its place: it adds. */
async function foreignRevisions(
  { settings, toplevel }: GitRepository,
  env: Environment,
): Promise<string | undefined> {
  for (const { scope, key, value } of settings) {
    if (key !== "blame.ignorerevsfile" || value === "") continue;
    const named = decodeBytes(value).replace(/^~(?=\/)/, homeDirectory(env));
    if (!isOwn(scope) && isAbsolute(named)) continue;
    const real = await realpath(resolve(toplevel, named)).catch(() => undefined);
    if (real === undefined || (isInside(real, toplevel) && !isSecretName(real))) continue;
    return "blame.ignoreRevsFile names a file that may not be read";
  }
  return undefined;
}

/** What one use of git has beside what all have. */
export interface GitUse {
  readonly settings?: readonly string[] | undefined;
  readonly variables: Environment;
  /** Which of the variables around us that begin with `GIT_` hold. */
  readonly keptNames: RegExp;
}

/** Undefined where there is no git. */
export async function startGit(
  { root, env, signal }: GitPlace,
  args: readonly string[],
  { settings = [], variables, keptNames }: GitUse,
): Promise<StartedProcess | undefined> {
  const program = await findProgram("git", env);
  if (program === undefined) return undefined;
  const kept = Object.entries(env).filter(([name]) => !name.startsWith("GIT_") || keptNames.test(name));
  const around = { ...Object.fromEntries(kept), GIT_TERMINAL_PROMPT: "0", LC_ALL: "C", ...variables };
  const options = [...safeOptions, ...[...safeSettings, ...settings].flatMap((each) => ["-c", each])];
  // Most commands start no program, and what Node needs for it takes a while to load.
  const { startProcess } = await import("./start-process.ts");
  return startProcess(program, [...options, ...args], { cwd: root, env: around, signal });
}

/** For every use, a person's own servers included. */
const safeSettings: readonly string[] = [
  // A folder that only looks like a repository may be a part of what was cloned.
  "safe.bareRepository=explicit",
  "core.fsmonitor=false",
  "core.hooksPath=/dev/null",
  "protocol.ext.allow=never",
  "core.quotePath=false",
  "log.showSignature=false",
  "color.ui=false",
  "core.alternateRefsCommand=",
  "submodule.recurse=false",
];

const safeOptions: readonly string[] = ["--no-pager", "--literal-pathspecs"];

/** Programs that turn files into text. Blame has none for whole diffs. */
const safeFlags: Readonly<Record<string, readonly string[]>> = {
  diff: ["--no-ext-diff", "--no-textconv"],
  log: ["--no-ext-diff", "--no-textconv"],
  show: ["--no-ext-diff", "--no-textconv"],
  blame: ["--no-textconv"],
};

/** A reader talks to no server, so nothing for servers and for people at a terminal can be run either. */
const reading: GitUse = {
  settings: [
    "protocol.allow=never",
    "core.sshCommand=false",
    "core.gitProxy=false",
    "core.askPass=false",
    "core.editor=false",
    "credential.helper=",
    "diff.external=",
    "interactive.diffFilter=",
    "gpg.program=false",
    "gpg.ssh.program=false",
    "gpg.x509.program=false",
    // Files that may lie anywhere.
    "diff.orderFile=/dev/null",
    "mailmap.file=",
    "mailmap.blob=",
  ],
  variables: {
    // Without it `status` writes the index and could lock out the person's own git.
    GIT_OPTIONAL_LOCKS: "0",
    GIT_NO_LAZY_FETCH: "1",
    // Wins over every setting; before 2.39.4 git fetches what is missing without asking for the variable above.
    GIT_ALLOW_PROTOCOL: "none",
  },
  // Which configuration files to read is the user's own choice; the rest could point git at another repository or program.
  keptNames:
    /^GIT_(CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)|CEILING_DIRECTORIES|DISCOVERY_ACROSS_FILESYSTEM|EXEC_PATH)$/,
};

/** The line of stderr that says why git failed, without git's own prefix. */
export function gitReason(stderr: string): string {
  const lines = stderr.split("\n").filter((line) => line.trim() !== "");
  const told = lines.find((line) => /^(fatal|error):/.test(line)) ?? lines.at(-1) ?? "git failed";
  return told.replace(/^(fatal|error):\s*/, "").trim();
}
