/** `import --move`: the rules of a project go from the files of AI tools into packs, and inject writes them back. All of it
 *  is one recorded step: what fails is taken back, and `undo` takes it back later. */
import { lstatSync } from "node:fs";
import { basename, join } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { printable, toByteString } from "../../core/text/index.ts";
import {
  attemptChange,
  type Caller,
  type Config,
  describeError,
  homeDirectory,
  listRuns,
  readForeignBytes,
  recordChanges,
  shownPath,
  undoRun,
} from "../../host/index.ts";
import type { Adapter } from "../adapters/adapter.ts";
import { chooseAdapters } from "../adapters/choose-adapters.ts";
import { injectFiles } from "../adapters/engine.ts";
import { explainUnplaced } from "../adapters/plan-files.ts";
import { prepareInject } from "../adapters/prepare-inject.ts";
import {
  type FoundInstructions,
  findInstructions,
  readInstructions,
  toolsOfFiles,
} from "../audit/find-instructions.ts";
import { markedBlock } from "../files/marked-block.ts";
import { explainFaults } from "../load-model/find-faults.ts";
import { createFileReader, loadChain } from "../load-model/load-files.ts";
import { knownTools } from "../load-model/tool-files.ts";
import { type InstructionFile, type LoadedInstructions, loadMove, type MovedTexts } from "../packs/index.ts";
import { explainUncovered, findWorse, type LoadedTokens, type MeasureOptions, measureLoads } from "./measure-loads.ts";
import { readEarlierPacks, writePack } from "./write-imported.ts";

export interface MoveOptions extends MeasureOptions {
  readonly config: Config;
  /** Ids of packs that exist. */
  readonly takenIds: readonly string[];
  /** Files that a person named. Without them, those of the project. */
  readonly named: readonly string[];
  /** Also move if a tool then loads more. */
  readonly force: boolean;
}

export interface MovePlan extends MovedTexts {
  /** Ids of the AI tools that inject writes for. */
  readonly tools: readonly string[];
  readonly unreadable: readonly { readonly path: string; readonly reason: string }[];
  /** What each tool loads now. */
  readonly before: readonly LoadedTokens[];
  /** The bytes of the files that are moved. */
  readonly sources: ReadonlyMap<string, string | undefined>;
}

/** Decides what would be moved. Writes nothing. */
export async function planMove(options: MoveOptions, caller: Caller): Promise<MovePlan> {
  const { root } = options;
  const { found, nested } = await findFiles(options, caller);
  // Read at once: what a person saves later must not be lost.
  const bytes = new Map(
    [...found.files, ...nested.files].map(({ path }) => [path, readForeignBytes(join(root, path), { within: root })]),
  );
  const writing = await chooseWriting(found, options, caller);
  // A file that holds only blocks of ours was moved before.
  const hasOwnText = ({ path }: InstructionFile) => {
    const bytes = readForeignBytes(join(root, path), { within: root });
    return bytes === undefined || (markedBlock.removeWhole(bytes) ?? "").trim() !== "";
  };
  const files = await findReaders([...found.files, ...nested.files], writing, options);
  const isNested = ({ reason }: { readonly reason: string }) => reason.startsWith(aboutFolder);
  const left = found.leftOut.filter((each) => !isNested(each));
  const { movable, kept } = await sortOut(files.filter(hasOwnText), { ...options, left });
  const { moveTexts } = await loadMove();
  const ids = writing.map(({ id }) => id);
  const given = {
    takenIds: options.takenIds,
    earlier: await readEarlierPacks(root),
    tools: ids,
    sharedTools: writing.filter(({ reads }) => reads.length > 0).map(({ id }) => id),
    // A new configuration gives the blocks no title.
    isBare: options.config.title === "" || !hasConfig(root),
  };
  const first = moveTexts(movable, given);
  // The file of a folder stays useful where it is. It is moved only if it repeats what is loaded with it.
  const isIn = (list: readonly { readonly path: string }[], path: string) => list.some((each) => each.path === path);
  const staying = first.moved.filter(({ path, duplicates }) => isIn(nested.files, path) && duplicates.length === 0);
  const rest = movable.filter(({ path }) => !isIn(staying, path));
  const moved = staying.length === 0 ? first : moveTexts(rest, given);
  const about = "stays, because it is about its folder and repeats nothing. Name it to move it";
  const all = [...left, ...kept, ...moved.kept, ...staying.map(({ path }) => ({ path, reason: about }))];
  return {
    ...moved,
    kept: all,
    tools: chooseTools(ids, { ...moved, kept: all }),
    unreadable: [...found.unreadable, ...nested.unreadable],
    before: await measureLoads(options),
    sources: new Map(moved.moved.map(({ path }) => [path, bytes.get(path)])),
  };
}

const aboutFolder = "is about its folder";

/** Finds the files of the project, or reads those that a person named. `nested` are those of folders. */
async function findFiles({ root, tree, adapters, named }: MoveOptions, { cwd }: Caller) {
  const found: FoundInstructions =
    named.length > 0
      ? await readInstructions(named, { adapters, root, cwd })
      : await findInstructions({ adapters, tree });
  const paths = found.leftOut
    .filter(({ reason }) => reason.startsWith(aboutFolder))
    .map(({ path }) => join(root, path));
  return { found, nested: await readInstructions(paths, { adapters, root, cwd }) };
}

/** The configuration chooses the tools, or else the files that are here do. */
async function chooseWriting(
  { files }: FoundInstructions,
  { root, adapters, config: { tools } }: MoveOptions,
  { env }: Caller,
): Promise<readonly Adapter[]> {
  const paths = files.map(({ path }) => path);
  const { owners } = await toolsOfFiles(paths, { adapters, root, env });
  const places = { scope: "project" as const, root, home: homeDirectory(env) };
  const inUse = await chooseAdapters(adapters, { tools, all: false, onlyInUse: true, places, env });
  const isChosen = (each: Adapter) => inUse.includes(each) || (tools === undefined && owners.includes(each));
  return adapters.filter((each) => each.type === "file-inject" && isChosen(each));
}

function hasConfig(root: string): boolean {
  return lstatSync(join(root, configPath), { throwIfNoEntry: false }) !== undefined;
}

const configPath = ".plimsoll/config.yaml";

/** Finds the tools that load each file, in the root or in the folder of the file. */
async function findReaders(
  files: readonly InstructionFile[],
  writing: readonly Adapter[],
  { root, tree, adapters }: MoveOptions,
): Promise<LoadedInstructions[]> {
  const outer = tree.repository ?? root;
  const reader = createFileReader(undefined, outer);
  const isServed = (id: string) => writing.some((each) => each.id === id || each.reads.includes(id));
  const tools = knownTools(adapters).filter(({ id }) => isServed(id));
  const loadedIn = new Map<string, ReadonlySet<string>>();
  for (const folder of new Set(["", ...files.map((file) => file.folder)]))
    for (const tool of tools) {
      const imports = adapters.find(({ id }) => id === tool.id)?.imports === true;
      const chain = await loadChain(tool, { reader, directory: join(root, folder), root: outer, imports });
      loadedIn.set(`${tool.id}\n${folder}`, new Set(chain.files.map(({ realPath }) => realPath)));
    }
  const readRealPath = async (path: string) => {
    const file = await reader.read(join(root, path));
    return file !== undefined && "text" in file ? file.realPath : join(root, path);
  };
  const found: LoadedInstructions[] = [];
  for (const file of files) {
    const name = basename(file.path);
    const [realPath, inRoot] = [await readRealPath(file.path), await readRealPath(name)];
    const doesLoad = (id: string) => loadedIn.get(`${id}\n${file.folder}`)?.has(realPath) === true;
    // A tool that imports AGENTS.md in the root will read the others too, once the import is gone.
    const willLoad = (id: string) =>
      tools.some((tool) => tool.id === id && tool.otherwise?.includes(name)) && loadedIn.get(`${id}\n`)?.has(inRoot);
    const readers = writing.filter(({ id, targets, nested }) => {
      const isTarget = targets.some(({ scope, path }) => scope === "project" && path === name);
      return doesLoad(id) || willLoad(id) || (nested === true && isTarget);
    });
    const served = writing.find(({ reads }) => reads.some(doesLoad));
    found.push({ ...file, readers: readers.map(({ id }) => id), servedBy: served?.id });
  }
  return found;
}

type LeftFile = MovedTexts["kept"][number];

/** Keeps files that inject could not write again, or that bring a text without holding it. */
async function sortOut(
  files: readonly LoadedInstructions[],
  { root, adapters, left }: MoveOptions & { readonly left: readonly LeftFile[] },
) {
  const reader = createFileReader(undefined, root);
  const names = new Set(adapters.flatMap(({ targets }) => targets.map(({ path }) => basename(path))));
  const tools = knownTools(adapters);
  const explain = async ({ path, imports, readers, servedBy }: LoadedInstructions): Promise<string | undefined> => {
    const file = await reader.read(join(root, path));
    const bytes = readForeignBytes(join(root, path), { within: root });
    const rest = bytes === undefined ? "" : (markedBlock.removeWhole(bytes) ?? "");
    if (readers.length === 0 && servedBy === undefined) return "stays, because no chosen tool reads it";
    if (/^<!--\s*plimsoll:(?:start|end):/m.test(rest)) return "stays, because a block in it was edited by hand";
    // Other files may need the text at that place.
    if (file !== undefined && "text" in file && file.isLink && !names.has(basename(file.realPath)))
      return `stays, because it is a link to ${file.realPath}`;
    // Claude Code reads AGENTS.md without an import once it has no file of its own.
    const others = readers.map((id) => tools.find((tool) => tool.id === id)?.otherwise ?? []);
    const needed = imports.find((each) => hidesShared(left) || others.some((names) => !names.includes(each)));
    return needed === undefined ? undefined : `stays, because it imports ${needed} for ${readers.join(", ")}`;
  };
  const movable: LoadedInstructions[] = [];
  const kept: LeftFile[] = [];
  for (const file of files) {
    const reason = await explain(file);
    if (reason === undefined) movable.push(file);
    else kept.push({ path: file.path, reason });
  }
  return { movable, kept };
}

/** With such a file, Claude Code does not read AGENTS.md. */
function hidesShared(kept: readonly LeftFile[]): boolean {
  return kept.some(({ path }) => /(?:^|\/)CLAUDE(?:\.local)?\.md$/.test(path));
}

/** Claude Code reads AGENTS.md if it has no file of its own. It needs none if all tools get the same text. */
function chooseTools(ids: readonly string[], { packs, kept }: Pick<MovedTexts, "packs" | "kept">): readonly string[] {
  const isSame = packs.every(({ tools, notTools }) => tools === undefined && notTools === undefined);
  const isServed = isSame && ids.includes("agents-md") && !hidesShared(kept);
  return isServed ? ids.filter((id) => id !== "claude-code") : ids;
}

export interface MoveResult {
  readonly after: readonly LoadedTokens[];
  readonly notes: readonly string[];
}

const command = "import --move";

/** Takes back what a killed run changed, so that the next one starts from the files as they were. Returns whether there
 *  was one. */
export async function takeBackInterrupted(
  root: string,
  { cwd, env, dryRun }: Caller & { readonly dryRun: boolean },
): Promise<boolean> {
  const [last] = await listRuns({ root, env });
  if (last === undefined || last.command !== command || last.state === "complete") return false;
  if (last.state === "running") {
    throw new ContextError("refused_target", `another ${command} is running in this project`, { hint: "Wait for it." });
  }
  const refused = (await undoRun(last, { env, dryRun: true, force: false })).find(({ problem }) => problem);
  if (refused !== undefined) {
    const shown = shownPath(refused.path, cwd, env);
    const message = `an earlier ${command} was interrupted, and ${printable(shown)} was changed since`;
    throw new ContextError("refused_target", message, { hint: 'Run "plimsoll undo --force", which keeps a copy.' });
  }
  if (!dryRun) await undoRun(last, { env, dryRun, force: false });
  return true;
}

/** Writes the packs, then the configuration, then takes the text out of the files and injects. What fails is taken
 *  back. */
export async function applyMove(plan: MovePlan, options: MoveOptions, caller: Caller): Promise<MoveResult> {
  const { root, force } = options;
  const { cwd, env } = caller;
  const usesBuiltIn = hasConfig(root) && options.config.packs.built_in === undefined;
  const onFailure = (run: Parameters<typeof undoRun>[0]) => undoRun(run, { env, dryRun: false, force: false });
  return recordChanges({ command, root, env, onFailure }, async () => {
    for (const pack of plan.packs) {
      const { problem } = await writePack(pack, { root, cwd, env, dryRun: false, force });
      if (problem !== undefined) fail(problem);
    }
    await writeConfig(plan, options, caller);
    for (const [path, bytes] of plan.sources) await removeFile({ path, bytes }, options, caller);
    const notes = await injectPacks(caller);
    const after = await measureLoads(options);
    notes.push(...explainUncovered(plan.before, after));
    const worse = force ? undefined : findWorse(plan.before, after);
    if (worse === undefined) return { after, notes };
    const others = ` Built-in packs are among it. "packs: { built_in: [] }" in ${configPath} leaves them out.`;
    const hint = `Use --force to move the text anyway.${usesBuiltIn ? others : ""}`;
    throw new ContextError("refused_target", `nothing was moved: ${worse}`, { hint });
  });
}

function fail(problem: string): never {
  throw new ContextError("write_failed", `nothing was moved: ${problem}`);
}

async function removeFile(
  { path, bytes }: { readonly path: string; readonly bytes: string | undefined },
  { root }: MoveOptions,
  { cwd, env }: Caller,
): Promise<void> {
  const changed = new ContextError("refused_target", "was changed meanwhile");
  const plan = (current: string | undefined) =>
    current === bytes ? { after: undefined, facts: undefined } : { problem: changed, facts: undefined };
  const { problem } = await attemptChange(join(root, path), { root, env, plan });
  if (problem !== undefined) fail(describeError(problem, (file) => shownPath(file, cwd, env)));
}

/** Returns what a person should know. */
async function injectPacks(caller: Caller): Promise<string[]> {
  const shown = (path: string) => printable(shownPath(path, caller.cwd, caller.env));
  const { engine, whyNoPacks } = await prepareInject({ scope: "project" }, caller);
  if (whyNoPacks !== undefined) fail(whyNoPacks);
  const { results, faults, unplaced } = await injectFiles({ ...engine, dryRun: false });
  for (const { problem, path, status, lost } of results) {
    if (problem !== undefined) fail(describeError(problem, shown));
    if (status === "too small" || status === "over budget") fail(`the rules do not fit into ${shown(path)}`);
    if (lost.length > 0) fail(`${shown(path)} has no room for ${lost.map(({ id }) => id).join(", ")}`);
  }
  // A text that a tool does not get any more would be lost for it.
  const [missing] = explainUnplaced(unplaced, shown);
  if (missing !== undefined) fail(missing);
  return explainFaults(faults, shown);
}

/** Adds what the configuration lacks. Keys that a person wrote stay. */
async function writeConfig(plan: MovePlan, { root, config }: MoveOptions, { cwd, env }: Caller): Promise<void> {
  const path = join(root, configPath);
  const largest = Math.max(...plan.before.map(({ tokens }) => tokens));
  const budget = Math.max(4_000, Math.ceil((largest * 1.2) / 1_000) * 1_000);
  const hasBudget = Object.keys(config.budgets).length > 0;
  const lines = [
    ...(config.tools === undefined ? [`tools: [${plan.tools.join(", ")}]`] : []),
    ...(hasBudget ? [] : [`budgets: { "*": ${budget} }        # most tokens of a tool's rules`]),
  ];
  const about = `# Plimsoll writes the packs for these tools. "plimsoll import --move" took them from the tools' files.`;
  const bare = `title: ""                     # only the packs; a text here adds a heading and facts about the project`;
  const fresh = [about, ...lines, "packs: { built_in: [] }       # built-in packs to use besides yours", bare];
  const { problem } = await attemptChange(path, {
    root,
    env,
    plan: (current) => {
      const text = (current === undefined ? fresh : lines).map((line) => `${line}\n`).join("");
      const gap = current === undefined || current.endsWith("\n") || text === "" ? "" : "\n";
      return { after: `${current ?? ""}${gap}${toByteString(text)}`, facts: undefined };
    },
  });
  if (problem !== undefined) fail(describeError(problem, () => shownPath(path, cwd, env)));
}
