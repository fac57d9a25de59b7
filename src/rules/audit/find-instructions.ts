/** Finds the files of a project that AI tools read, as far as people wrote them. */
import { basename, dirname, relative, resolve, sep } from "node:path";
import { importedNames, toByteString } from "../../core/text/index.ts";
import { type Environment, homeDirectory, isInside, type ProjectTree } from "../../host/index.ts";
import type { Adapter } from "../adapters/adapter.ts";
import { chooseAdapters } from "../adapters/choose-adapters.ts";
import { readOwnership } from "../files/marked-block.ts";
import type { InstructionFile } from "../packs/index.ts";
import { createFileReader, type FileReader, type TextFile } from "./audit-chain.ts";
import { knownTools } from "./audit-files.ts";

export interface FindOptions {
  readonly adapters: readonly Adapter[];
  readonly tree: ProjectTree;
}

export interface FoundInstructions {
  /** AGENTS.md first: most tools read it. */
  readonly files: readonly InstructionFile[];
  /** Files that were left out on purpose. */
  readonly leftOut: readonly LeftOutFile[];
  /** Files that should have been read. */
  readonly unreadable: readonly LeftOutFile[];
}

interface LeftOutFile {
  readonly path: string;
  readonly reason: string;
}

/** Files that people write by hand are much smaller, and the loader of packs reads no larger ones. */
const maxBytes = 5 * 1024 * 1024;

/** Finds the files in the root. Files of folders are listed as left out: they stay useful where they are. */
export async function findInstructions({ adapters, tree }: FindOptions): Promise<FoundInstructions> {
  const { root } = tree;
  const names = instructionNames(adapters);
  const reader = createFileReader(undefined, root);
  const files: InstructionFile[] = [];
  const leftOut: LeftOutFile[] = [];
  const unreadable: LeftOutFile[] = [];
  const seen = new Set<string>();
  for (const path of await pathsOf(names, { root, reader })) {
    const shown = shownPath(path, root);
    const file = await reader.read(path);
    const reason = file === undefined ? undefined : await reasonAgainst(file, { root, reader });
    if (reason !== undefined) (reason.startsWith(unread) ? unreadable : leftOut).push({ path: shown, reason });
    else if (file !== undefined && "text" in file && !seen.has(file.realPath)) {
      seen.add(file.realPath);
      files.push({ path: shown, text: file.text, folder: "", imports: await importsOf(file, { root, reader }) });
    }
  }
  const nested = tree.files.map(({ path }) => path).filter((path) => isNested(path, names, root));
  leftOut.push(
    ...nested.map((path) => ({ path: shownPath(path, root), reason: "is about its folder. Name it to import it" })),
  );
  return { files, leftOut, unreadable };
}

/** How the reader reports a file that is not UTF-8, or that the user may not read. */
const unread = "cannot be read";

/** Reads files that a person named. */
export async function readInstructions(
  named: readonly string[],
  { adapters, root, cwd }: { readonly adapters: readonly Adapter[]; readonly root: string; readonly cwd: string },
): Promise<FoundInstructions> {
  const names = instructionNames(adapters);
  const reader = createFileReader();
  const files = new Map<string, InstructionFile>();
  const unreadable: LeftOutFile[] = [];
  for (const name of named) {
    const path = resolve(cwd, name);
    const file = (await reader.read(path)) ?? { reason: "is not a file" };
    const reason = "text" in file ? sizeReason(file) : file.reason;
    if (reason !== undefined) unreadable.push({ path: name, reason });
    if (reason !== undefined || !("text" in file) || files.has(file.realPath)) continue;
    const isOwn = isInside(path, root);
    files.set(file.realPath, {
      path: isOwn ? shownPath(path, root) : basename(path),
      text: file.text,
      folder: isOwn ? folderOf(path, names, root) : "",
      imports: await importsOf(file, { root, reader }),
    });
  }
  return { files: [...files.values()], leftOut: [], unreadable };
}

export interface ToolsOfFiles {
  /** Tools that one of the files is for. */
  readonly owners: readonly Adapter[];
  /** Those, and the tools that inject would find now. A tool may not be found once its file is gone. */
  readonly ids: readonly string[];
}

/** Returns the AI tools of imported files. `paths` are relative to the root. */
export async function toolsOfFiles(
  paths: readonly string[],
  { adapters, root, env }: { readonly adapters: readonly Adapter[]; readonly root: string; readonly env: Environment },
): Promise<ToolsOfFiles> {
  const owners = adapters.filter((adapter) => paths.some((path) => isFileOf(path, adapter)));
  const places = { scope: "project" as const, root, home: homeDirectory(env) };
  const found = await chooseAdapters(adapters, { tools: undefined, all: false, places, env });
  return { owners, ids: adapters.filter((each) => owners.includes(each) || found.includes(each)).map(({ id }) => id) };
}

function isFileOf(path: string, { type, targets, detect }: Adapter): boolean {
  const isAt = (place: string) => path === place || path.startsWith(`${place}/`);
  const isTarget = targets.some(
    ({ scope, mode, path: target }) =>
      scope === "project" && (mode === "replace-section" ? basename(path) === basename(target) : isAt(dirname(target))),
  );
  return type === "file-inject" && (isTarget || detect.some((sign) => sign.path !== undefined && isAt(sign.path)));
}

/** Returns the files of the project that a file imports. */
async function importsOf(
  { path, text }: TextFile,
  { root, reader }: { readonly root: string; readonly reader: FileReader },
): Promise<string[]> {
  const found: string[] = [];
  for (const name of new Set(importedNames(text))) {
    const target = resolve(dirname(path), name);
    const isFile = isInside(target, root) && (await reader.read(target)) !== undefined;
    if (isFile) found.push(shownPath(target, root));
  }
  return found;
}

/** Names in every folder, such as `AGENTS.md`, and patterns in the root, such as `.cursor/rules/**\/*.mdc`. */
function instructionNames(adapters: readonly Adapter[]): readonly string[] {
  const tools = knownTools(adapters);
  const names = tools.flatMap(({ root = [], down = [], otherwise = [] }) => [...root, ...down, otherwise].flat());
  const first = ["AGENTS.md", "CLAUDE.md"];
  return [...new Set([...first, ...[...names].sort()])];
}

async function pathsOf(
  names: readonly string[],
  { root, reader }: { readonly root: string; readonly reader: FileReader },
): Promise<ReadonlySet<string>> {
  const lists = await Promise.all(names.map((name) => reader.expand(root, name)));
  return new Set(lists.flat());
}

async function reasonAgainst(
  file: TextFile | { readonly path: string; readonly reason: string },
  { root, reader }: { readonly root: string; readonly reader: FileReader },
): Promise<string | undefined> {
  if (!("text" in file)) return file.reason;
  if (readOwnership(toByteString(file.text)).kind === "ours") return "was written by plimsoll";
  const isPersonal = /\.(?:local|override)\.md$/.test(file.path) || (await reader.isIgnored(file.path, root));
  if (isPersonal) return "is one person's own. Name it to import it";
  return sizeReason(file);
}

function sizeReason({ bytes }: TextFile): string | undefined {
  return bytes > maxBytes ? `has ${bytes} bytes, more than ${maxBytes} are not read` : undefined;
}

function shownPath(path: string, root: string): string {
  return relative(root, path).split(sep).join("/");
}

function isNested(path: string, names: readonly string[], root: string): boolean {
  return dirname(path) !== root && !/(?:^|\/)\./.test(shownPath(path, root)) && names.includes(basename(path));
}

/** Returns the folder that a file is about: the one that holds AGENTS.md, or a folder such as `.cursor`. */
function folderOf(path: string, names: readonly string[], root: string): string {
  const parts = shownPath(path, root).split("/");
  const hidden = parts.findIndex((part) => part.startsWith("."));
  if (hidden !== -1) return parts.slice(0, hidden).join("/");
  return names.includes(basename(path)) ? parts.slice(0, -1).join("/") : "";
}
