/** A repository of many small files, the same on every machine. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface Repository {
  readonly root: string;
  readonly files: number;
  readonly bytes: number;
}

export interface Needle {
  readonly word: string;
  /** Files that hold it, once each. */
  readonly files: number;
}

const FILES_PER_FOLDER = 100;
/** Files that git ignores: listing and searching have to leave them out. */
const IGNORED_FILES = 1_000;

/** Rare enough for one page, and so frequent that it takes many. */
export const needles = { few: "needleOfTwenty", many: "needleOfManyFiles" } as const;

export async function createRepository(root: string, files: number): Promise<Repository> {
  mkdirSync(root, { recursive: true });
  git(root, ["init", "--quiet", "--initial-branch=main"]);
  const bytes = await importFiles(root, files);
  git(root, ["reset", "--quiet", "--hard"]);
  mkdirSync(join(root, "out"));
  for (let index = 0; index < IGNORED_FILES; index++)
    writeFileSync(join(root, "out", `file-${index}.txt`), `${needles.few} ${needles.many}\n`);
  return { root, files: files + 1, bytes };
}

/** How many files hold a needle. */
export function needlesIn(files: number): Readonly<Record<keyof typeof needles, Needle>> {
  const holding = (every: number): number => Math.ceil(files / every);
  return {
    few: { word: needles.few, files: holding(everyOf(files).few) },
    many: { word: needles.many, files: holding(everyOf(files).many) },
  };
}

function everyOf(files: number): Readonly<Record<keyof typeof needles, number>> {
  return { few: Math.max(1, Math.ceil(files / 20)), many: 50 };
}

/** One pack and no loose objects: adding the files one by one would take longer than all measurements. */
async function importFiles(root: string, files: number): Promise<number> {
  const child = spawn("git", ["fast-import", "--quiet"], {
    cwd: root,
    stdio: ["pipe", "inherit", "inherit"],
  });
  const ended = once(child, "exit");
  const write = async (text: string): Promise<void> => {
    if (!child.stdin.write(text)) await once(child.stdin, "drain");
  };
  await write("commit refs/heads/main\ncommitter Bench <bench@example.com> 1700000000 +0000\ndata 5\nfiles\n");
  let bytes = 0;
  for (let index = -1; index < files; index++) {
    const [path, text] = index < 0 ? [".gitignore", "out/\n"] : [pathOf(index), textOf(index, files)];
    bytes += text.length;
    await write(`M 100644 inline ${path}\ndata ${text.length}\n${text}\n`);
  }
  child.stdin.end();
  const [code] = await ended;
  if (code !== 0) throw new Error(`git fast-import ended with ${code}`);
  return bytes;
}

function pathOf(index: number): string {
  const folder = Math.floor(index / FILES_PER_FOLDER);
  return `packages/area-${folder % 20}/part-${folder}/module-${index}.ts`;
}

/** About a kilobyte of what might be code, in ASCII. */
function textOf(index: number, files: number): string {
  const { few, many } = everyOf(files);
  const lines = Array.from(
    { length: 14 },
    (_, line) => `export const value${line} = compute(${index}, "part ${index % 97}", { line: ${line * 7} });`,
  );
  if (index % few === 0) lines.push(`// ${needles.few}`);
  if (index % many === 0) lines.push(`export function ${needles.many}(): void {}`);
  return `/** Module ${index}. */\n${lines.join("\n")}\n`;
}

function git(cwd: string, args: readonly string[]): void {
  execFileSync("git", args, { cwd, stdio: ["ignore", "ignore", "inherit"] });
}
