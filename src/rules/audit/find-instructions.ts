/** Finds the files of a project that AI tools read, as far as people wrote them. */
import { basename, dirname, relative, resolve, sep } from "node:path";
import { importedNames, toByteString } from "../../core/text/index.ts";
import { type Environment, homeDirectory, isInside } from "../../host/index.ts";
import type { Adapter } from "../adapters/adapter.ts";
import { chooseAdapters } from "../adapters/choose-adapters.ts";
import { readOwnership } from "../files/marked-block.ts";
import type { ProjectTree } from "../files/project-tree.ts";
import { createFileReader, type FileReader, type TextFile } from "../load-model/load-files.ts";
import { knownTools } from "../load-model/tool-files.ts";
import type { InstructionFile } from "../packs/index.ts";

export interface FindOptions {
  readonly adapters: readonly Adapter[];
  readonly tree: ProjectTree;
}

interface LeftOutFile {
  readonly path: string;
  readonly reason: string;
}

export interface FoundInstructions {
  /** AGENTS.md first: most tools read it. */
  readonly files: readonly InstructionFile[];
  /** Files that were left out on purpose. */
  readonly leftOut: readonly LeftOutFile[];
  /** Files that should have been read. */
  readonly unreadable: readonly LeftOutFile[];
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
  const paths = await Promise.all(names.map((name) => reader.expand(root, name)));
  for (const absolute of new Set(paths.flat())) {
    const path = toRelative(absolute, root);
    const file = await reader.read(absolute);
    const reason = file === undefined ? undefined : await reasonAgainst(file, { root, reader });
    // So the reader reports a file that is not UTF-8, or that the user may not read.
    if (reason !== undefined) (reason.startsWith("cannot be read") ? unreadable : leftOut).push({ path, reason });
    else if (file !== undefined && "text" in file && !seen.has(file.realPath)) {
      seen.add(file.realPath);
      files.push({ path, text: file.text, folder: "", imports: await findImported(file, { root, reader }) });
    }
  }
  for (const file of tree.files) {
    const path = toRelative(file.path, root);
    const isNested = path.includes("/") && !/(?:^|\/)\./.test(path) && names.includes(basename(path));
    if (isNested) leftOut.push({ path, reason: "is about its folder. Name it to import it" });
  }
  return { files, leftOut, unreadable };
}

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
      path: isOwn ? toRelative(path, root) : basename(path),
      text: file.text,
      folder: isOwn ? chooseFolder(path, names, root) : "",
      imports: await findImported(file, { root, reader }),
    });
  }
  return { files: [...files.values()], leftOut: [], unreadable };
}

/** Returns the AI tools of imported files. `owners` are tools that one of the files is for. `ids` also has the tools
 *  that inject would find now, because it may not find them once their files are gone. `paths` are relative to the
 *  root. */
export async function toolsOfFiles(
  paths: readonly string[],
  { adapters, root, env }: { readonly adapters: readonly Adapter[]; readonly root: string; readonly env: Environment },
): Promise<{ readonly owners: readonly Adapter[]; readonly ids: readonly string[] }> {
  const isAt = (path: string, place: string) => path === place || path.startsWith(`${place}/`);
  const owners = adapters.filter(({ type, targets, detect }) =>
    paths.some((path) => {
      const isTarget = targets.some(({ scope, mode, path: target }) => {
        const isOwn = mode === "replace-section" ? basename(path) === basename(target) : isAt(path, dirname(target));
        return scope === "project" && isOwn;
      });
      return type === "file-inject" && (isTarget || detect.some((sign) => sign.path && isAt(path, sign.path)));
    }),
  );
  const places = { scope: "project" as const, root, home: homeDirectory(env) };
  const found = await chooseAdapters(adapters, { tools: undefined, all: false, places, env });
  return { owners, ids: adapters.filter((each) => owners.includes(each) || found.includes(each)).map(({ id }) => id) };
}

/** Returns the files of the project that a file imports. */
async function findImported(
  { path, text }: TextFile,
  { root, reader }: { readonly root: string; readonly reader: FileReader },
): Promise<string[]> {
  const found: string[] = [];
  for (const name of new Set(importedNames(text))) {
    const target = resolve(dirname(path), name);
    const isFile = isInside(target, root) && (await reader.read(target)) !== undefined;
    if (isFile) found.push(toRelative(target, root));
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

function toRelative(path: string, root: string): string {
  return relative(root, path).split(sep).join("/");
}

/** Returns the folder that a file is about: the one that holds AGENTS.md, or a folder such as `.cursor`. */
function chooseFolder(path: string, names: readonly string[], root: string): string {
  const parts = toRelative(path, root).split("/");
  const hidden = parts.findIndex((part) => part.startsWith("."));
  if (hidden !== -1) return parts.slice(0, hidden).join("/");
  return names.includes(basename(path)) ? parts.slice(0, -1).join("/") : "";
}
