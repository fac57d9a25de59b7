/** Leaves out files that would keep a tool from reading what people wrote: a new CLAUDE.md hides the team's AGENTS.md from
 *  Claude Code. The tool reads the block in the other file instead. */
import type { ProjectTree } from "../files/project-tree.ts";
import { createFaultFinder, type Holder, type LoadFault } from "../load-model/find-faults.ts";
import { findFolders } from "../load-model/find-folders.ts";
import { createFileReader, type FileReader } from "../load-model/load-files.ts";
import { knownTools, type ToolFiles } from "../load-model/tool-files.ts";
import type { Adapter } from "./adapter.ts";
import { type FileTarget, fileTargets, type Places, withReaders } from "./targets.ts";

export interface ChooseOptions {
  readonly places: Places;
  readonly tree: ProjectTree;
  /** All adapters that could be chosen. */
  readonly known: readonly Adapter[];
  /** Ids of tools that keep their own file although they read another file of the run. */
  readonly ownFiles: readonly string[];
  /** The ids that a person named. Without it, those of the adapters. */
  readonly ids?: readonly string[] | undefined;
}

export interface HarmlessTargets {
  readonly targets: readonly FileTarget[];
  /** What the tools of the run still do not read, or read twice. */
  readonly faults: readonly LoadFault[];
}

interface HarmlessOptions extends ChooseOptions {
  /** Returns the text of people in a target's file. */
  readOwn(target: FileTarget): string;
  /** Finds the files that get no block because they import another one. */
  findImports(
    targets: readonly FileTarget[],
    options: Pick<HarmlessOptions, "places" | "readOwn">,
  ): ReadonlyMap<FileTarget, FileTarget>;
  /** Whether the block of `other` has all that the tools of `target` should get. */
  mayReplace?: ((other: FileTarget, target: FileTarget) => boolean) | undefined;
}

/** Returns the files of these adapters without those that hide text of people from a tool. */
export async function chooseHarmless(adapters: readonly Adapter[], options: HarmlessOptions): Promise<HarmlessTargets> {
  const { places, tree, known, ownFiles } = options;
  const targets = await fileTargets(adapters, places, ownFiles);
  const reader = createFileReader(undefined, tree.repository ?? places.root);
  const tools = await findNamedTools(adapters, { ...options, reader });
  if (tools.length === 0) return { targets, faults: [] };
  const first = await dropHarmful(targets, { ...options, reader, tools });
  const isUnserved = first.dropped.some(({ adapters: own }) => own.some(({ id }) => !first.servedBy.has(id)));
  // The hidden file is one that tools share, so the block can go there.
  const shared = known.filter(({ nested, reads }) => nested === true && reads.length > 0);
  if (!isUnserved || shared.every((each) => adapters.includes(each))) return finish(first, adapters);
  const more = await fileTargets([...new Set([...adapters, ...shared])], places, ownFiles);
  return finish(await dropHarmful(more, { ...options, reader, tools }), adapters);
}

interface Dropped {
  readonly targets: readonly FileTarget[];
  readonly dropped: readonly FileTarget[];
  readonly faults: readonly LoadFault[];
  readonly servedBy: ReadonlyMap<string, string>;
}

/** Takes out one file after the other that hides text of people and is there only for the block. */
async function dropHarmful(
  targets: readonly FileTarget[],
  options: HarmlessOptions & { readonly reader: FileReader; readonly tools: readonly ToolFiles[] },
): Promise<Dropped> {
  const { places, tree, known, reader, tools } = options;
  const holders = new Map<Holder, FileTarget>();
  const imports = options.findImports(targets, options);
  for (const target of targets) {
    const { names, realPath } = target;
    const ownText = options.readOwn(target);
    holders.set({ names, realPath, ownText: ownText.trim() === "" ? undefined : ownText }, target);
  }
  const find = createFaultFinder({
    candidates: [...holders.keys()],
    tools,
    folders: await findFolders(tools, { tree, start: places.root }),
    root: tree.repository ?? places.root,
    reader,
    doesImport: ({ id }) => known.find((each) => each.id === id)?.imports === true,
  });
  const dropped: FileTarget[] = [];
  const losses: LoadFault[] = [];
  const listLeft = () => {
    const kept = [...holders].filter(([, target]) => !dropped.includes(target));
    // What a file imports shows the block, unless that file was left out.
    return kept.filter(([, target]) => !kept.some(([, other]) => other === imports.get(target)));
  };
  for (const [holder, target] of listLeft()) {
    if (options.mayReplace === undefined || holder.ownText !== undefined) continue;
    const others = listLeft().filter(([other]) => other !== holder);
    const { faults, servedBy } = await find(others.map(([other]) => other));
    const isServed = target.adapters.every(({ id }) => {
      const other = others.find(([{ realPath }]) => realPath === servedBy.get(id))?.[1];
      const isAlone = other !== undefined && faults.every(({ tool }) => tool !== id);
      return isAlone && options.mayReplace?.(other, target) === true;
    });
    if (isServed) dropped.push(target);
  }
  for (;;) {
    const left = listLeft();
    const { faults, servedBy } = await find(left.map(([holder]) => holder));
    // By the real path: a link in some folder, which led nowhere before, may now lead to a file of this run.
    const loss = faults.find(({ isLoss, byRealPath }) => isLoss && left.some(([each]) => each.realPath === byRealPath));
    const harmful = left.find(([{ ownText, realPath }]) => ownText === undefined && realPath === loss?.byRealPath);
    if (loss === undefined || harmful === undefined) {
      const named = faults.map((fault) => {
        const reason = losses.find(({ tool }) => fault.kind === "not loaded" && tool === fault.tool);
        return reason === undefined ? fault : { ...reason, folder: fault.folder };
      });
      return { targets: targets.filter((each) => !dropped.includes(each)), dropped, faults: named, servedBy };
    }
    losses.push(loss);
    dropped.push(harmful[1]);
  }
}

/** Adds the adapters whose tools read another file now: their budgets and limits apply to it. */
function finish({ targets, dropped, faults, servedBy }: Dropped, adapters: readonly Adapter[]): HarmlessTargets {
  const moved = adapters.filter((each) => dropped.some((target) => target.adapters.includes(each)));
  const isUsed = (target: FileTarget) =>
    target.adapters.some((each) => adapters.includes(each)) || [...servedBy.values()].includes(target.realPath);
  return {
    targets: targets.filter(isUsed).map((target) => {
      const readers = moved.filter(({ id }) => servedBy.get(id) === target.realPath);
      return readers.length === 0 ? target : withReaders(target, readers);
    }),
    faults,
  };
}

/** Returns the tools that must get the block. A person named them, or the project has a file that no other tool loads.
 *  A tool counts only if its `seen` says that the real tool was checked. */
async function findNamedTools(
  adapters: readonly Adapter[],
  { known, places, reader, ids = adapters.map(({ id }) => id) }: ChooseOptions & { readonly reader: FileReader },
): Promise<ToolFiles[]> {
  const tools = knownTools(known);
  const listNames = ({ root = [], down = [], ends = [], current = [] }: ToolFiles) =>
    [...root, ...down, ...ends, ...current].flat();
  const isChosen = ({ id }: ToolFiles) => adapters.some((each) => each.id === id || each.reads.includes(id));
  const named: ToolFiles[] = [];
  for (const tool of tools.filter((each) => each.seen !== undefined && isChosen(each))) {
    const others = new Set(tools.filter((each) => each !== tool).flatMap(listNames));
    const own = listNames(tool).filter((name) => !others.has(name));
    const paths = (await Promise.all(own.map((name) => reader.expand(places.root, name)))).flat();
    const isUsed = async () => (await Promise.all(paths.map((path) => reader.read(path)))).some(Boolean);
    if (ids.includes(tool.id) || (await isUsed())) named.push(tool);
  }
  return named;
}
