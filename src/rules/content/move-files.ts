/** `import --move`: the rules of a project go from the files of AI tools into packs, and inject writes them back. All of it
 *  is one recorded step: what fails is taken back, and `undo` takes it back later. */
import { join } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { printable, toByteString } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
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
import { createRepetitionFinder } from "../audit/audit.ts";
import { findInstructions, readInstructions, toolsOfFiles } from "../audit/find-instructions.ts";
import { markedBlock } from "../files/marked-block.ts";
import type { ProjectTree } from "../files/project-tree.ts";
import { explainFaults } from "../load-model/find-faults.ts";
import { findFolders } from "../load-model/find-folders.ts";
import { createFileReader, loadChain } from "../load-model/load-files.ts";
import { knownTools } from "../load-model/tool-files.ts";
import { type InstructionFile, loadMove, type MovedTexts } from "../packs/index.ts";
import { readEarlierPacks, writePack } from "./write-imported.ts";

export interface MoveOptions {
  readonly root: string;
  readonly tree: ProjectTree;
  readonly adapters: readonly Adapter[];
  readonly config: Config;
  /** Ids of packs that exist. */
  readonly takenIds: readonly string[];
  /** Files that a person named. Without them, those of the project. */
  readonly named: readonly string[];
  readonly counter: Counter;
  /** Also move if a tool then loads more. */
  readonly force: boolean;
}

export interface MovePlan extends MovedTexts {
  /** Ids of the AI tools that inject writes for. */
  readonly tools: readonly string[];
  readonly unreadable: readonly { readonly path: string; readonly reason: string }[];
  /** What each tool loads now. */
  readonly before: readonly LoadedTokens[];
}

/** What a tool loads by itself when it is started in a folder. */
export interface LoadedTokens {
  readonly tool: string;
  /** Relative to the root. Empty for the root. */
  readonly folder: string;
  readonly tokens: number;
  /** Tokens of lines that it loads a second time. */
  readonly repeated: number;
  /** How many texts of Plimsoll are among it. */
  readonly blocks: number;
}

/** Decides what would be moved. Writes nothing. */
export async function planMove(options: MoveOptions, { cwd, env }: Caller): Promise<MovePlan> {
  const { root, tree, adapters, config, named } = options;
  const found =
    named.length > 0
      ? await readInstructions(named, { adapters, root, cwd })
      : await findInstructions({ adapters, tree });
  const isNested = ({ reason }: { readonly reason: string }) => reason.startsWith("is about its folder");
  const nestedPaths = found.leftOut.filter(isNested).map(({ path }) => join(root, path));
  const nested = await readInstructions(nestedPaths, { adapters, root, cwd });
  const { owners } = await toolsOfFiles(
    found.files.map(({ path }) => path),
    { adapters, root, env },
  );
  const places = { scope: "project" as const, root, home: homeDirectory(env) };
  const inUse = await chooseAdapters(adapters, { tools: config.tools, all: false, onlyInUse: true, places, env });
  const chosen = config.tools === undefined ? adapters.filter((each) => [...owners, ...inUse].includes(each)) : inUse;
  const writing = chosen.filter(({ type }) => type === "file-inject");
  const files = await withReaders([...found.files, ...nested.files], writing, options);
  const { movable, kept } = sortOut(files, root);
  const { moveTexts } = await loadMove();
  const ids = writing.map(({ id }) => id);
  const sharedTools = writing.filter(({ reads }) => reads.length > 0).map(({ id }) => id);
  const given = { takenIds: options.takenIds, earlier: await readEarlierPacks(root), tools: ids, sharedTools };
  const first = moveTexts(movable, given);
  // The file of a folder stays useful where it is. It is moved only if it repeats what is loaded with it.
  const staying = first.moved.filter(({ path, duplicates }) => isIn(nested.files, path) && duplicates.length === 0);
  const about = "stays, because it is about its folder and repeats nothing. Name it to move it";
  const moved =
    staying.length === 0
      ? first
      : moveTexts(
          movable.filter(({ path }) => !isIn(staying, path)),
          given,
        );
  const left = found.leftOut.filter((each) => !isNested(each));
  return {
    ...moved,
    kept: [...left, ...kept, ...moved.kept, ...staying.map(({ path }) => ({ path, reason: about }))],
    tools: chooseTools(ids, moved),
    unreadable: [...found.unreadable, ...nested.unreadable],
    before: await measureLoads(options),
  };
}

function isIn(files: readonly { readonly path: string }[], path: string): boolean {
  return files.some((each) => each.path === path);
}

/** Finds the tools that load each file, in the root or in the folder of the file. */
async function withReaders(files: readonly InstructionFile[], writing: readonly Adapter[], options: MoveOptions) {
  const { root, tree, adapters } = options;
  const reader = createFileReader(undefined, tree.repository ?? root);
  const tools = knownTools(adapters).filter(({ id }) => writing.some((each) => each.id === id));
  const loadedIn = new Map<string, ReadonlySet<string>>();
  for (const folder of new Set(["", ...files.map((file) => file.folder)]))
    for (const tool of tools) {
      const imports = adapters.find(({ id }) => id === tool.id)?.imports === true;
      const chain = await loadChain(tool, {
        reader,
        directory: join(root, folder),
        root: tree.repository ?? root,
        imports,
      });
      loadedIn.set(`${tool.id}\n${folder}`, new Set(chain.files.map(({ realPath }) => realPath)));
    }
  const withAll: (InstructionFile & { readonly readers: readonly string[] })[] = [];
  for (const file of files) {
    const path = join(root, file.path);
    const read = await reader.read(path);
    const realPath = read !== undefined && "text" in read ? read.realPath : path;
    const readers = writing.filter(({ id, targets, nested }) => {
      const isTarget = targets.some(
        (target) => target.scope === "project" && target.path === file.path.split("/").at(-1),
      );
      return loadedIn.get(`${id}\n${file.folder}`)?.has(realPath) === true || (nested === true && isTarget);
    });
    withAll.push({ ...file, readers: readers.map(({ id }) => id) });
  }
  return withAll;
}

/** Keeps files that inject could not write again: no tool of the run reads them, or a person edited a block in them. */
function sortOut<File extends { readonly path: string; readonly readers: readonly string[] }>(
  files: readonly File[],
  root: string,
) {
  const movable: File[] = [];
  const kept: { path: string; reason: string }[] = [];
  for (const file of files) {
    const bytes = readForeignBytes(join(root, file.path), { within: root });
    const rest = bytes === undefined ? "" : (markedBlock.removeWhole(bytes) ?? "");
    const isEdited = /^<!--\s*plimsoll:(?:start|end):/m.test(rest);
    if (file.readers.length === 0) kept.push({ path: file.path, reason: "stays, because no chosen tool reads it" });
    else if (isEdited) kept.push({ path: file.path, reason: "stays, because a block in it was edited by hand" });
    else movable.push(file);
  }
  return { movable, kept };
}

/** Claude Code reads AGENTS.md if it has no file of its own. It needs none if all tools get the same text. */
function chooseTools(ids: readonly string[], { packs, kept }: MovedTexts): readonly string[] {
  const isSame = packs.every(({ tools, notTools }) => tools === undefined && notTools === undefined);
  const hasOwn = kept.some(({ path }) => /(?:^|\/)CLAUDE(?:\.local)?\.md$/.test(path));
  return isSame && !hasOwn && ids.includes("agents-md") ? ids.filter((id) => id !== "claude-code") : ids;
}

async function measureLoads({ root, tree, adapters, counter }: MoveOptions): Promise<LoadedTokens[]> {
  const reader = createFileReader(counter, tree.repository ?? root);
  const repetitions = createRepetitionFinder(counter);
  const tools = knownTools(adapters);
  const loads: LoadedTokens[] = [];
  for (const directory of await findFolders(tools, { tree, start: root }))
    for (const tool of tools) {
      const imports = adapters.find(({ id }) => id === tool.id)?.imports === true;
      const { files } = await loadChain(tool, { reader, directory, root: tree.repository ?? root, imports });
      const always = files.filter(({ onDemand }) => !onDemand);
      loads.push({
        tool: tool.id,
        folder: directory === root ? "" : directory.slice(root.length + 1),
        tokens: always.reduce((sum, file) => sum + file.tokens, 0),
        repeated: repetitions.find(always).reduce((sum, each) => sum + repetitions.tokensOf(each), 0),
        blocks: always.filter(({ text }) => /^<!-- plimsoll:(?:start:|owns )/m.test(text)).length,
      });
    }
  return loads;
}

export interface MoveResult {
  readonly after: readonly LoadedTokens[];
  readonly notes: readonly string[];
}

const command = "import --move";

/** Goes on where a killed run stopped: takes back what it changed. Returns whether there was one. */
export async function takeBackInterrupted(root: string, { cwd, env }: Caller): Promise<boolean> {
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
  await undoRun(last, { env, dryRun: false, force: false });
  return true;
}

/** Writes the packs, then the configuration, then takes the text out of the files and injects. */
export async function applyMove(plan: MovePlan, options: MoveOptions, caller: Caller): Promise<MoveResult> {
  const { root } = options;
  const { env } = caller;
  try {
    return await recordChanges({ command, root, env }, () => changeFiles(plan, options, caller));
  } catch (error) {
    const [last] = await listRuns({ root, env });
    // Nothing is recorded as running unless a file was changed.
    if (last?.command === command && last.state === "running")
      await undoRun(last, { env, dryRun: false, force: false });
    throw error;
  }
}

async function changeFiles(plan: MovePlan, options: MoveOptions, caller: Caller): Promise<MoveResult> {
  const { root, adapters, force } = options;
  const { cwd, env } = caller;
  const shown = (path: string) => printable(shownPath(path, cwd, env));
  const fail = (problem: string): never => {
    throw new ContextError("write_failed", `nothing was moved: ${problem}`);
  };
  for (const pack of plan.packs) {
    const { problem } = await writePack(pack, { root, cwd, env, dryRun: false, force });
    if (problem !== undefined) fail(problem);
  }
  await writeConfig(plan, options, caller);
  const sources = new Map(plan.moved.map(({ path }) => [path, readForeignBytes(join(root, path), { within: root })]));
  for (const [path, bytes] of sources) {
    const changed = new ContextError("refused_target", "was changed meanwhile");
    const { problem } = await attemptChange(join(root, path), {
      root,
      env,
      plan: (current) =>
        current === bytes ? { after: undefined, facts: undefined } : { problem: changed, facts: undefined },
    });
    if (problem !== undefined) fail(describeError(problem, shown));
  }
  const { engine, whyNoPacks } = await prepareInject({ scope: "project" }, caller);
  if (whyNoPacks !== undefined) fail(whyNoPacks);
  const { results, faults, unplaced } = await injectFiles({ ...engine, dryRun: false });
  for (const { problem, path, status, lost } of results) {
    if (problem !== undefined) fail(describeError(problem, shown));
    if (status === "too small" || status === "over budget") fail(`the rules do not fit into ${shown(path)}`);
    if (lost.length > 0) fail(`${shown(path)} has no room for ${lost.map(({ id }) => id).join(", ")}`);
  }
  const after = await measureLoads(options);
  const notes = [...explainFaults(faults, shown), ...explainUnplaced(unplaced, shown)];
  if (!force) refuseMore({ ...plan, tools: listNamed(plan.tools, adapters) }, after);
  return { after, notes };
}

/** The tools that the ids mean: an adapter of a shared file stands for the tools that read it. */
function listNamed(ids: readonly string[], adapters: readonly Adapter[]): string[] {
  return adapters.filter(({ id }) => ids.includes(id)).flatMap(({ id, reads }) => [id, ...reads]);
}

/** The two markers around a block cost about this much. */
const markerTokens = 50;

/** A move must not make anything more expensive than the markers around the text. */
function refuseMore({ before, tools }: Pick<MovePlan, "before" | "tools">, after: readonly LoadedTokens[]): void {
  for (const { tool, folder, tokens, blocks, repeated } of after.filter((each) => tools.includes(each.tool))) {
    const earlier = before.find((each) => each.tool === tool && each.folder === folder);
    if (earlier === undefined) continue;
    const isMore = tokens > earlier.tokens + markerTokens * Math.max(0, blocks - earlier.blocks);
    if (!isMore && repeated <= earlier.repeated) continue;
    const what = isMore ? "load" : "repeat";
    const [now, then] = isMore ? [tokens, earlier.tokens] : [repeated, earlier.repeated];
    const message = `nothing was moved: ${tool} would ${what} ${now} tokens instead of ${then}`;
    throw new ContextError("refused_target", message, { hint: "Use --force to move the text anyway." });
  }
}

/** Adds what the configuration lacks. Keys that a person wrote stay. */
async function writeConfig(plan: MovePlan, { root, config }: MoveOptions, { cwd, env }: Caller): Promise<void> {
  const path = join(root, ".plimsoll/config.yaml");
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
  if (problem !== undefined) {
    throw new ContextError(
      "write_failed",
      describeError(problem, () => shownPath(path, cwd, env)),
    );
  }
}
