/** Fetches skills of git repositories and pins them in the project. The repository is not trusted: only plain text files
 *  below a folder of it are read, no link is followed, nothing is run, and a skill that could act by itself is refused. */
import { lstatSync, readdirSync } from "node:fs";
import { basename, dirname, join, relative, sep } from "node:path";
import { compareText, toByteString } from "../../core/text/index.ts";
import {
  cacheDirectory,
  type Environment,
  makeDirectory,
  readCompanySource,
  removeEmptyFolders,
  removeTree,
  type SkillSource,
} from "../../host/index.ts";
import type { ContentScope } from "../content/content-files.ts";
import { explainPowers, readSkills } from "../content/read-skills.ts";
import type { Skill } from "../packs/index.ts";
import { fetchGitTree } from "./company.ts";
import { openPins, type PinFolder, readPinIndex, type SkillPin, writeOwn } from "./fetched-texts.ts";
import { hashSkill, isPinOf, isWanted, nameSource, readFetchedSkills } from "./pinned-skills.ts";

/** The result for one skill, or for a source that could not be read. */
export interface SkillSync {
  /** Absent for a whole source. */
  readonly name: string | undefined;
  readonly source: string;
  readonly revision: string;
  /** `pinned`: not looked up. `behind`, `new` and `gone` are what an update would change. */
  readonly status: "fetched" | "updated" | "removed" | "current" | "pinned" | "behind" | "new" | "gone" | "failed";
  /** The commit that is pinned now. */
  readonly commit: string | undefined;
  /** The commit that was pinned before an update. */
  readonly previous: string | undefined;
  /** The commit of the repository, if its skill differs. */
  readonly latest: string | undefined;
  readonly reason: string | undefined;
  /** Files that a shell or another program runs. A person should read them. */
  readonly scripts: readonly string[];
  /** Files that were left out, and why. */
  readonly leftOut: readonly string[];
}

export interface SyncSkillsOptions {
  readonly skills: readonly SkillSource[];
  readonly folder: PinFolder;
  readonly env: Environment;
  /** `missing`: fetch what is not pinned, at the pinned commit. `check`: write nothing. */
  readonly mode: "missing" | "update" | "check";
  readonly allowPrivate?: boolean | undefined;
  readonly progress?: ((text: string) => void) | undefined;
}

/** A failure never stops the rest, and keeps what is pinned. */
export async function syncSkills(options: SyncSkillsOptions): Promise<readonly SkillSync[]> {
  const { skills, folder, mode } = options;
  const index = await readPinIndex(folder);
  const before = "reason" in index ? [] : index.skills;
  const state: SkillState = { before, stored: await readFetchedSkills(folder), pins: [], results: [] };
  for (const source of skills) await syncSource(source, state, options);
  if (mode === "check") return state.results;
  for (const pin of before) {
    if (state.pins.some(({ name }) => name === pin.name)) continue;
    await removeFiles(pin.name, Object.keys(state.stored.get(pin.name)?.files ?? {}), folder);
    const { name, source, revision } = pin;
    state.results.push({ ...noFacts, name, source, revision, status: "removed" });
  }
  const pins = state.pins.toSorted((a, b) => compareText(a.name, b.name));
  const problem = await (await openPins(folder)).change({ added: [], skills: pins });
  return problem === undefined
    ? state.results
    : state.results.map((each) => ({ ...each, status: "failed", reason: problem }));
}

const noFacts = {
  commit: undefined,
  previous: undefined,
  latest: undefined,
  reason: undefined,
  scripts: [],
  leftOut: [],
} as const;

interface SkillState {
  readonly before: readonly SkillPin[];
  readonly stored: ReadonlyMap<string, Skill>;
  /** What the index names afterwards. */
  readonly pins: SkillPin[];
  readonly results: SkillSync[];
}

async function syncSource(source: SkillSource, state: SkillState, options: SyncSkillsOptions): Promise<void> {
  const { mode } = options;
  const { revision } = nameSource(source);
  const pins = state.before.filter((pin) => isPinOf(pin, source) && isWanted(source, pin.name));
  const isIntact = ({ name, sha256 }: SkillPin) => {
    const skill = state.stored.get(name);
    return skill !== undefined && hashSkill(skill) === sha256;
  };
  const [intact, damaged] = [pins.filter(isIntact), pins.filter((pin) => !isIntact(pin))];
  if (mode !== "missing") return takeSkills(source, { at: revision, pins }, state, options);
  for (const pin of intact) addPin(pin, "pinned", state);
  // A skill that somebody changed is fetched again as it was pinned.
  for (const commit of new Set(damaged.map((pin) => pin.commit))) {
    const again = damaged.filter((pin) => pin.commit === commit);
    await takeSkills({ ...source, only: again.map(({ name }) => name) }, { at: commit, pins: again }, state, options);
  }
  const only = source.only?.filter((name) => !pins.some((pin) => pin.name === name));
  if (only === undefined ? pins.length === 0 : only.length > 0)
    await takeSkills({ ...source, only }, { at: pins[0]?.commit ?? revision, pins: [] }, state, options);
}

function addPin(pin: SkillPin, status: SkillSync["status"], state: SkillState, more: Partial<SkillSync> = {}): void {
  const { name, source, revision, commit } = pin;
  if (status !== "new") state.pins.push(pin);
  state.results.push({ ...noFacts, name, source, revision, commit, status, ...more });
}

/** Fetches one revision, and pins its skills or compares them. `pins` are those that it replaces. */
async function takeSkills(
  source: SkillSource,
  { at, pins }: { readonly at: string; readonly pins: readonly SkillPin[] },
  state: SkillState,
  options: SyncSkillsOptions,
): Promise<void> {
  const { mode, progress } = options;
  const named = nameSource(source);
  progress?.(`fetching skills from ${named.source}`);
  const read = await readRemote(source, at, options);
  if ("reason" in read) {
    for (const pin of pins) state.pins.push(pin);
    state.results.push({ ...noFacts, ...named, name: undefined, status: "failed", reason: read.reason });
    return;
  }
  const { commit, skills, refused } = read;
  const absent = source.only?.filter((name) => !skills.has(name) && !refused.has(name)) ?? [];
  for (const name of absent) refused.set(name, `${named.path}/ of the repository has no such skill`);
  for (const [name, { skill, leftOut }] of skills) {
    const pin = pins.find((each) => each.name === name);
    const taken = { ...named, name, commit, sha256: hashSkill(skill) };
    const problem = await takeSkill(skill, { pin, taken, leftOut }, state, options);
    if (problem !== undefined) refused.set(name, problem);
  }
  const gone = pins.filter(({ name }) => !skills.has(name) && !refused.has(name));
  if (mode === "check") for (const pin of gone) addPin(pin, "gone", state, { latest: commit });
  for (const [name, reason] of refused) {
    const pin = pins.find((each) => each.name === name);
    if (pin !== undefined) state.pins.push(pin);
    state.results.push({ ...noFacts, ...named, name, commit: pin?.commit, status: "failed", reason });
  }
}

/** Pins a skill, or compares it. Returns the problem if it is not used. */
async function takeSkill(
  skill: Skill,
  {
    pin,
    taken,
    leftOut,
  }: { readonly pin: SkillPin | undefined; readonly taken: SkillPin; readonly leftOut: readonly string[] },
  state: SkillState,
  { mode, folder }: SyncSkillsOptions,
): Promise<string | undefined> {
  const { name, commit, sha256 } = taken;
  const other = state.pins.find((each) => each.name === name);
  if (other !== undefined) return `${other.source} has a skill of this name too`;
  const scripts = Object.keys(skill.files).filter(
    (file) => skill.files[file]!.startsWith("#!") || programFile.test(file),
  );
  const facts = { scripts, leftOut };
  const isSame = pin?.sha256 === sha256;
  if (mode === "check") {
    if (pin === undefined) addPin(taken, "new", state, facts);
    else if (isSame) addPin(pin, "current", state, facts);
    else addPin(pin, "behind", state, { ...facts, latest: commit });
    return undefined;
  }
  // Whoever changes the index must not choose another text.
  if (mode === "missing" && pin !== undefined && !isSame)
    return `commit ${pin.commit.slice(0, 7)} has another text than its hash in index.json. Run \`plimsoll sync --update\``;
  const problem = await writeSkill(skill, state.stored.get(name), folder);
  if (problem !== undefined) return problem;
  if (pin === undefined || mode === "missing") addPin(taken, "fetched", state, facts);
  else if (isSame) addPin(taken, "current", state, facts);
  else addPin(taken, "updated", state, { ...facts, previous: pin.commit });
  return undefined;
}

/** Programs, and settings that may start some. */
const programFile = /\.(?:[cm]?[jt]s|py|rb|pl|php|ps1|bat|cmd|sh|bash|zsh|fish)$|(?:^|\/)agents\/[^/]+\.ya?ml$/i;

interface RemoteSkills {
  readonly commit: string;
  readonly skills: ReadonlyMap<string, { readonly skill: Skill; readonly leftOut: readonly string[] }>;
  /** Why a skill is not used, by its name. */
  readonly refused: Map<string, string>;
}

async function readRemote(
  source: SkillSource,
  revision: string,
  { folder, env, allowPrivate }: SyncSkillsOptions,
): Promise<RemoteSkills | { readonly reason: string }> {
  const named = nameSource(source);
  const place = { root: folder.root, env, key: "skills" };
  const { source: address, revision: asked = "HEAD" } = source;
  const from = readCompanySource({ source: address, revision: asked }, place);
  if (from.kind === "directory") return { reason: `${from.path} is not a git repository` };
  const folders = join(cacheDirectory(env), "skills");
  // A killed run leaves a folder. The next process with its number removes it.
  const tree = join(folders, `fetch-${process.pid}.tmp`);
  makeDirectory(folders, 0o700);
  try {
    await removeTree(tree);
    const fetched = await fetchGitTree({ url: from.url, revision, directory: tree, env, allowPrivate });
    if ("reason" in fetched) return fetched;
    const directory = findFolder(tree, named.path);
    if (typeof directory !== "string") return directory;
    return { commit: fetched.commit, ...(await readFolder(directory, source, tree)) };
  } finally {
    await removeTree(tree).catch(() => {});
  }
}

/** Returns a folder of the tree, without following a link. */
function findFolder(tree: string, path: string): string | { readonly reason: string } {
  let folder = tree;
  for (const part of path.split("/").filter((each) => each !== "" && each !== ".")) {
    folder = join(folder, part);
    const stats = lstatSync(folder, { throwIfNoEntry: false });
    if (stats?.isSymbolicLink()) return { reason: `${path} leads through a link, and links are not followed` };
    if (!stats?.isDirectory()) return { reason: `the repository has no folder ${path}` };
  }
  return folder;
}

async function readFolder(
  directory: string,
  source: SkillSource,
  tree: string,
): Promise<Pick<RemoteSkills, "skills" | "refused">> {
  // The folder may be a skill itself.
  const isSkill = directory !== tree && lstatSync(join(directory, "SKILL.md"), { throwIfNoEntry: false })?.isFile();
  const folder = isSkill === true ? dirname(directory) : directory;
  const names = readdirSync(folder, { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && (isSkill !== true || entry.name === basename(directory)),
  );
  const refused = new Map<string, string>();
  const skills = new Map<string, { skill: Skill; leftOut: readonly string[] }>();
  for (const { name } of names.slice(0, limits.skills).filter((each) => isWanted(source, each.name))) {
    const size = explainSize(join(folder, name));
    if (size !== undefined) refused.set(name, size);
  }
  const scope: ContentScope = { directory: folder, strictness: "warning", within: tree, problems: [] };
  const isRead = (name: string) =>
    names.slice(0, limits.skills).some((each) => each.name === name) && isWanted(source, name) && !refused.has(name);
  for (const skill of await readSkills(scope, folder, isRead)) {
    const powers = await explainPowers(skill);
    const own = scope.problems.filter(({ file }) => file.startsWith(join(folder, skill.name) + sep));
    const leftOut = own.map(({ file, message }) => `${relative(folder, file)} ${message}`);
    if (powers === undefined) skills.set(skill.name, { skill, leftOut });
    else refused.set(skill.name, powers);
  }
  for (const { file, message } of scope.problems) {
    const [name = ""] = relative(folder, file).split(sep);
    if (isRead(name) && !skills.has(name) && !refused.has(name)) refused.set(name, message);
  }
  return { skills, refused };
}

/** More than any repository of skills that is meant to be used. */
const limits = { skills: 100, files: 200, bytes: 1024 * 1024 } as const;

/** Returns why a folder is too large, before any file of it is read. */
function explainSize(folder: string): string | undefined {
  let [files, bytes] = [0, 0];
  const open = [folder];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const entry of readdirSync(next, { withFileTypes: true })) {
      files++;
      if (entry.isDirectory()) open.push(join(next, entry.name));
      else bytes += lstatSync(join(next, entry.name)).size;
      if (files > limits.files) return `has more than ${limits.files} files and folders`;
      if (bytes > limits.bytes) return `has more than ${limits.bytes} bytes (1 MiB)`;
    }
  }
  return undefined;
}

/** Writes the files as text, never as executable files. Returns the problem if it fails. */
async function writeSkill(
  { name, files }: Skill,
  stored: Skill | undefined,
  folder: PinFolder,
): Promise<string | undefined> {
  const gone = Object.keys(stored?.files ?? {}).filter((file) => !Object.hasOwn(files, file));
  const problem = await removeFiles(name, gone, folder);
  if (problem !== undefined) return problem;
  for (const [file, text] of Object.entries(files)) {
    const failed = await writeOwn(folder, join("skills", name, file), () => toByteString(text));
    if (failed !== undefined) return failed;
  }
  return undefined;
}

async function removeFiles(name: string, files: readonly string[], folder: PinFolder): Promise<string | undefined> {
  for (const file of files) {
    const path = join("skills", name, file);
    const problem = await writeOwn(folder, path, () => undefined);
    if (problem !== undefined) return problem;
    await removeEmptyFolders(join(folder.directory, "fetched", path), folder.root);
  }
  return undefined;
}
