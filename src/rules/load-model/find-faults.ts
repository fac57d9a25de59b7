/** Finds out what is wrong with the files that hold the block, by what the tools load: a file keeps a tool from reading what
 *  people wrote, a tool misses the block, or gets it twice. */
import { followLinks } from "../../host/index.ts";
import { type Chain, type FileReader, type LoadedFile, loadChain } from "./load-files.ts";
import type { ToolFiles } from "./tool-files.ts";

/** A file that holds the block, or may hold it. */
export interface Holder {
  /** All names of the file: a link is a second name. */
  readonly names: readonly string[];
  readonly realPath: string;
  /** The text of people in it, without the block. Undefined if the file is there only for the block. */
  readonly ownText: string | undefined;
}

export interface LoadFault {
  /** `hidden`: another file keeps the tool from reading this one. */
  readonly kind: "hidden" | "twice" | "not loaded";
  /** The tool's id. */
  readonly tool: string;
  /** The folder where the tool is started. */
  readonly folder: string;
  /** The file that the tool does not read, or reads as well. */
  readonly file: string | undefined;
  /** The file that hides it, or that has the block as well. */
  readonly by: string | undefined;
  /** The same file with links resolved. */
  readonly byRealPath: string | undefined;
  /** The tool read this file without us. */
  readonly isLoss: boolean;
}

export interface FaultOptions {
  /** Every file that may hold the block. */
  readonly candidates: readonly Holder[];
  readonly tools: readonly ToolFiles[];
  /** The root, and the folders below it with instruction files. Which files a tool reads there is less certain, so tools
   *  without `seen` count in the root only. */
  readonly folders: readonly string[];
  readonly root: string;
  readonly reader: FileReader;
  /** Whether a tool follows `@file` lines. */
  doesImport(tool: ToolFiles): boolean;
}

/** Stands for the block in a text that is not written yet. */
const placeholder = "<!-- the block of plimsoll -->";

export interface FoundFaults {
  readonly faults: readonly LoadFault[];
  /** The real path of the file with the block that each tool reads in the root, by the tool's id. */
  readonly servedBy: ReadonlyMap<string, string>;
}

/** Returns a function that finds the faults if these of the candidates hold the block. */
export function createFaultFinder(options: FaultOptions): (holders: readonly Holder[]) => Promise<FoundFaults> {
  const { folders, root, reader, doesImport, candidates } = options;
  const load = async (tool: ToolFiles, directory: string, holders: readonly Holder[]): Promise<Loaded> => {
    const planned = withBlocks(reader, holders, candidates);
    const { files, hidden } = await loadChain(tool, { reader: planned, directory, root, imports: doesImport(tool) });
    const always = files.filter(({ onDemand, alwaysText }) => !onDemand && alwaysText === undefined);
    return {
      blocks: always.filter(({ text }) => text.includes(placeholder)),
      own: files.filter(({ text }) => hasOwnText(text)),
      hidden,
    };
  };
  const rows = options.tools.flatMap((tool) =>
    (tool.seen === undefined ? folders.slice(0, 1) : folders).map((folder) => ({ tool, folder })),
  );
  let befores: readonly Loaded[] | undefined;
  return async (holders) => {
    befores ??= await Promise.all(rows.map(({ tool, folder }) => load(tool, folder, [])));
    const faults: LoadFault[] = [];
    const servedBy = new Map<string, string>();
    for (const [index, { tool, folder }] of rows.entries()) {
      const after = await load(tool, folder, holders);
      faults.push(...compare(befores[index]!, after, { tool: tool.id, folder }));
      const [block] = after.blocks;
      if (block !== undefined && folder === folders[0]) servedBy.set(tool.id, block.realPath);
    }
    return { faults, servedBy };
  };
}

/** Whether a file holds more than texts of Plimsoll: blocks in folders, rules of packs. */
function hasOwnText(text: string): boolean {
  if (/^<!-- plimsoll:owns /m.test(text)) return false;
  const blocks = /<!-- plimsoll:start:[\s\S]*?<!-- plimsoll:end:[^>]*-->/g;
  return text.replace(placeholder, "").replace(blocks, "").trim() !== "";
}

interface Loaded extends Pick<Chain, "hidden"> {
  readonly blocks: readonly LoadedFile[];
  /** The files with text of people. */
  readonly own: readonly LoadedFile[];
}

function compare(before: Loaded, after: Loaded, about: Pick<LoadFault, "tool" | "folder">): LoadFault[] {
  const faults: LoadFault[] = [];
  const { own, hidden, blocks } = after;
  const lost = before.own.find(({ realPath }) => !own.some((file) => file.realPath === realPath));
  if (lost !== undefined) {
    const by = hidden.find(({ file }) => file.realPath === lost.realPath)?.by;
    faults.push({ ...about, kind: "hidden", file: lost.path, ...nameCause(by), isLoss: true });
  }
  const [first, second] = blocks;
  if (second !== undefined) {
    faults.push({ ...about, kind: "twice", file: second.path, ...nameCause(first), isLoss: false });
  }
  if (first === undefined) {
    const pair = hidden.find(({ file }) => file.text.includes(placeholder));
    const kind = pair === undefined ? "not loaded" : "hidden";
    faults.push({ ...about, kind, file: pair?.file.path, ...nameCause(pair?.by), isLoss: false });
  }
  return faults;
}

function nameCause(file: Pick<LoadedFile, "path" | "realPath"> | undefined): Pick<LoadFault, "by" | "byRealPath"> {
  return { by: file?.path, byRealPath: file?.realPath };
}

/** Returns a reader that finds the files as they are if these hold the block, and no other one does. */
function withBlocks(reader: FileReader, holders: readonly Holder[], candidates: readonly Holder[]): FileReader {
  const byName = new Map(candidates.flatMap((each) => each.names.map((name) => [name, each] as const)));
  const byRealPath = new Map(candidates.map((each) => [each.realPath, each]));
  return {
    ...reader,
    async read(path) {
      const file = byName.has(path) ? undefined : await reader.read(path);
      // A link in a folder may lead to a file that this run creates.
      const isDangling = file !== undefined && !("text" in file);
      const realPath = isDangling ? await followLinks(path).catch(() => path) : file?.realPath;
      const candidate = byName.get(path) ?? byRealPath.get(realPath ?? "");
      if (candidate === undefined) return file;
      const { ownText, names } = candidate;
      const isHolder = holders.includes(candidate);
      if (ownText === undefined && !isHolder) return undefined;
      const text = [ownText ?? "", isHolder ? placeholder : ""].filter((part) => part !== "").join("\n\n");
      const isLink = path !== names[0];
      return { path, realPath: candidate.realPath, isLink, text, bytes: Buffer.byteLength(text), tokens: 0 };
    },
  };
}

/** Something that a person should know and that fails no check. */
export interface LoadNote extends LoadFault {
  /** The file with the block that the tool reads, because a file of its own was left out. */
  readonly servedBy?: string | undefined;
  /** Nobody named the tool. */
  readonly isUnnamed?: true;
}

/** Says what is wrong, one line for each tool and reason, with the folders. */
export function explainFaults(faults: readonly LoadNote[], show: (path: string) => string): string[] {
  const lines = new Map<string, string[]>();
  for (const fault of faults) {
    const line = explainFault(fault, show);
    lines.set(line, [...(lines.get(line) ?? []), show(fault.folder) || "."]);
  }
  return [...lines].map(([line, folders]) => `${line} (in ${folders.join(", ")})`);
}

function explainFault(
  { kind, tool, file, by, isLoss, servedBy, isUnnamed }: LoadNote,
  show: (path: string) => string,
): string {
  const [what, other] = [file === undefined ? "the block" : show(file), by === undefined ? "another file" : show(by)];
  if (servedBy !== undefined)
    return `${tool} reads the block in ${show(servedBy)}, because a new ${other} would hide ${what}`;
  if (isLoss) return `${tool} no longer reads ${what}: ${other} hides it`;
  const reason = {
    hidden: `${other} hides ${what}`,
    twice: `it reads the block in ${other} and in ${what}`,
    "not loaded": "it loads no file with the block",
  }[kind];
  const whom = isUnnamed ? `${tool}, which \`tools:\` does not name,` : tool;
  return `${whom} gets ${kind === "twice" ? "the block twice" : "no block"}: ${reason}`;
}
