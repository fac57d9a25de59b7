/** Leaves out files that would keep a tool from reading what people wrote: a new CLAUDE.md hides the team's AGENTS.md from
 *  Claude Code. The tool reads the block in the other file instead. */
import type { ProjectTree } from "../files/project-tree.ts";
import { createFaultFinder, type Holder, type LoadFault, type LoadNote } from "../load-model/find-faults.ts";
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
  /** Why a tool gets no file of its own, and what a tool that nobody named reads twice. */
  readonly notes: readonly LoadNote[];
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

/** The tools of a run, by what their faults mean. */
interface JudgedTools {
  /** They decide where blocks go: a person named them, or the project has a file that no other tool loads. */
  readonly deciding: readonly ToolFiles[];
  /** A person named them too, but nobody has compared the table with the real tool (`seen`). */
  readonly named: readonly ToolFiles[];
  /** Nobody named them, but they are of the same product as a chosen tool. */
  readonly siblings: readonly ToolFiles[];
}

/** Returns the files of these adapters without those that hide text of people from a tool. */
export async function chooseHarmless(adapters: readonly Adapter[], options: HarmlessOptions): Promise<HarmlessTargets> {
  const { places, tree, known, ownFiles } = options;
  const targets = await fileTargets(adapters, places, ownFiles);
  const whole = createFileReader(undefined, tree.repository ?? places.root);
  const { reader, personal } = withoutPersonalFiles(whole, tree);
  const tools = await judgeTools(adapters, { ...options, reader });
  if (Object.values(tools).flat().length === 0) return { targets, faults: [], notes: [] };
  const all = { ...options, reader, whole, personal, tools };
  const first = await arrange(targets, all);
  const isUnserved = first.dropped.some(({ adapters: own }) => own.some(({ id }) => !first.servedBy.has(id)));
  // The hidden file is one that tools share, so the block can go there.
  const shared = known.filter(({ nested, reads }) => nested === true && reads.length > 0);
  if (!isUnserved || shared.every((each) => adapters.includes(each))) return finish(first, adapters);
  const more = await fileTargets([...new Set([...adapters, ...shared])], places, ownFiles);
  return finish(await arrange(more, all), adapters);
}

/** Returns a reader that does not see files such as CLAUDE.local.md that git ignores. Other people do not have them, so
 *  they must not decide which files the project gets. `personal` collects the paths that were looked for. */
function withoutPersonalFiles(reader: FileReader, tree: ProjectTree) {
  const personal = new Set<string>();
  const read: FileReader["read"] = async (path) => {
    const file = await reader.read(path);
    if (file === undefined || !/\.(?:local|override)\.md$/.test(path) || !(await tree.isIgnoredFile(path))) return file;
    personal.add(path);
    return undefined;
  };
  return { reader: { ...reader, read }, personal };
}

interface Arrangement {
  readonly targets: readonly FileTarget[];
  readonly dropped: readonly FileTarget[];
  readonly faults: readonly LoadFault[];
  readonly notes: readonly LoadNote[];
  readonly servedBy: ReadonlyMap<string, string>;
}

interface ArrangeOptions extends HarmlessOptions {
  readonly tools: JudgedTools;
  readonly reader: FileReader;
  /** Reads personal files too. */
  readonly whole: FileReader;
  readonly personal: ReadonlySet<string>;
}

/** Decides which of the targets get the block. */
async function arrange(targets: readonly FileTarget[], options: ArrangeOptions): Promise<Arrangement> {
  const { places, tree, known, personal, tools, mayReplace } = options;
  const holders = targets.map((target) => {
    const ownText = options.readOwn(target);
    return {
      target,
      names: target.names,
      realPath: target.realPath,
      ownText: ownText.trim() === "" ? undefined : ownText,
    };
  });
  const folders = await findFolders(tools.deciding, { tree, start: places.root });
  const createFinder = (some: readonly ToolFiles[], reader = options.reader) =>
    createFaultFinder({
      candidates: holders,
      tools: some,
      folders,
      root: tree.repository ?? places.root,
      reader,
      doesImport: ({ id }) => known.find((each) => each.id === id)?.imports === true,
    });
  const imports = options.findImports(targets, options);
  const dropped: FileTarget[] = [];
  const listLeft = () => {
    const kept = holders.filter(({ target }) => !dropped.includes(target));
    // What a file imports shows the block, unless that file was left out.
    return kept.filter(({ target }) => !kept.some((other) => other.target === imports.get(target)));
  };
  const search = { listLeft, dropped, find: createFinder(tools.deciding) };
  if (mayReplace !== undefined) await dropReplaceable({ ...search, mayReplace });
  const losses = await dropHarmful(search);
  await dropRepeated(search);
  const { faults, servedBy } = await search.find(listLeft());
  const explained = faults.map((fault) => {
    const reason = losses.find(({ tool }) => fault.kind === "not loaded" && tool === fault.tool);
    return reason === undefined ? fault : { ...reason, isLoss: false, folder: fault.folder };
  });
  const findMore = async (some: readonly ToolFiles[], reader?: FileReader) =>
    some.length === 0 ? [] : (await createFinder(some, reader)(listLeft())).faults;
  const here = personal.size === 0 ? [] : await findMore(tools.deciding, options.whole);
  return {
    targets: targets.filter((each) => !dropped.includes(each)),
    dropped,
    servedBy,
    // What a tool without `seen` skips is known from its source or documentation. What else it loads is less certain.
    faults: [...explained, ...(await findMore(tools.named)).filter(({ kind }) => kind === "hidden")],
    notes: [
      ...losses
        .filter(({ tool }) => servedBy.has(tool))
        .map((each) => ({ ...each, servedBy: servedBy.get(each.tool) })),
      ...(await findMore(tools.siblings)).map((each) => ({ ...each, isUnnamed: true as const })),
      ...here.filter(({ by = "" }) => personal.has(by)),
    ],
  };
}

interface ArrangementSearch {
  readonly dropped: FileTarget[];
  /** Returns the files that hold the block. */
  listLeft(): readonly (Holder & { readonly target: FileTarget })[];
  find: ReturnType<typeof createFaultFinder>;
}

/** Takes out the files that are there only for the block, if their tools get the same from another file. */
async function dropReplaceable({
  listLeft,
  dropped,
  find,
  mayReplace,
}: ArrangementSearch & { readonly mayReplace: NonNullable<HarmlessOptions["mayReplace"]> }): Promise<void> {
  for (const holder of listLeft()) {
    if (holder.ownText !== undefined) continue;
    const others = listLeft().filter((other) => other !== holder);
    const { faults, servedBy } = await find(others);
    const isServed = holder.target.adapters.every(({ id }) => {
      const other = others.find(({ realPath }) => realPath === servedBy.get(id));
      const isAlone = other !== undefined && faults.every(({ tool }) => tool !== id);
      return isAlone && mayReplace(other.target, holder.target);
    });
    if (isServed) dropped.push(holder.target);
  }
}

/** Takes out one file after the other that hides text of people and is there only for the block. Returns what they hid. */
async function dropHarmful({ listLeft, dropped, find }: ArrangementSearch): Promise<readonly LoadFault[]> {
  const losses: LoadFault[] = [];
  for (;;) {
    const left = listLeft();
    const { faults } = await find(left);
    // By the real path: a link in some folder, which led nowhere before, may now lead to a file of this run.
    const loss = faults.find(({ isLoss, byRealPath }) => isLoss && left.some((each) => each.realPath === byRealPath));
    const harmful = left.find(({ ownText, realPath }) => ownText === undefined && realPath === loss?.byRealPath);
    if (loss === undefined || harmful === undefined) return losses;
    losses.push(loss);
    dropped.push(harmful.target);
  }
}

/** Takes out a file whose tools read the block in another file anyway: a file that it imports may import that one. */
async function dropRepeated({ listLeft, dropped, find }: ArrangementSearch): Promise<void> {
  const { faults } = await find(listLeft());
  if (!faults.some(({ kind }) => kind === "twice")) return;
  let count = faults.length;
  for (const holder of listLeft()) {
    const others = listLeft().filter((other) => other !== holder);
    const after = await find(others);
    if (after.faults.length >= count || holder.target.adapters.some(({ id }) => !after.servedBy.has(id))) continue;
    count = after.faults.length;
    dropped.push(holder.target);
  }
}

/** Adds the adapters whose tools read another file now: their budgets and limits apply to it. */
function finish(
  { targets, dropped, faults, notes, servedBy }: Arrangement,
  adapters: readonly Adapter[],
): HarmlessTargets {
  const moved = adapters.filter((each) => dropped.some((target) => target.adapters.includes(each)));
  const isUsed = (target: FileTarget) =>
    target.adapters.some((each) => adapters.includes(each)) || [...servedBy.values()].includes(target.realPath);
  return {
    targets: targets.filter(isUsed).map((target) => {
      const readers = moved.filter(({ id }) => servedBy.get(id) === target.realPath);
      return readers.length === 0 ? target : withReaders(target, readers);
    }),
    faults,
    notes,
  };
}

async function judgeTools(
  adapters: readonly Adapter[],
  { known, places, reader, ids = adapters.map(({ id }) => id) }: ChooseOptions & { readonly reader: FileReader },
): Promise<JudgedTools> {
  const tools = knownTools(known);
  const listNames = ({ root = [], down = [], ends = [], current = [] }: ToolFiles) =>
    [...root, ...down, ...ends, ...current].flat();
  const isChosen = ({ id }: ToolFiles) => adapters.some((each) => each.id === id || each.reads.includes(id));
  const chosen = tools.filter(isChosen);
  const deciding: ToolFiles[] = [];
  for (const tool of chosen.filter((each) => each.seen !== undefined)) {
    const others = new Set(tools.filter((each) => each !== tool).flatMap(listNames));
    const own = listNames(tool).filter((name) => !others.has(name));
    const paths = (await Promise.all(own.map((name) => reader.expand(places.root, name)))).flat();
    const isUsed = async () => (await Promise.all(paths.map((path) => reader.read(path)))).some(Boolean);
    if (ids.includes(tool.id) || (await isUsed())) deciding.push(tool);
  }
  return {
    deciding,
    named: chosen.filter(({ id, seen }) => seen === undefined && ids.includes(id)),
    siblings: chosen.filter((tool) => !deciding.includes(tool) && ids.includes(tool.siblingOf ?? "")),
  };
}
