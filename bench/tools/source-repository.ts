/** A repository of real source code with a history: packages that are installed here, committed bit by bit. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

export interface SourceRepository {
  readonly root: string;
  readonly files: number;
  /** The path of a file with about 1,300 lines. */
  readonly longest: string;
  /** A word that many files have. */
  readonly word: string;
}

const COMMITS = 60;
const FILES_PER_COMMIT = 20;
/** Commits at the end that change lines of earlier files. */
const EDITS = 20;
const EDITED_FILES = 10;
const MOST_LINES = 1_300;
/** Tools shorten longer lines, which would not be a saving by form. */
const MOST_LINE = 400;

/** `modules` is the folder of the installed packages. */
export function createSourceRepository(root: string, modules: string, files: number): SourceRepository {
  const sources = readSources(modules, files);
  mkdirSync(root, { recursive: true });
  const git = (...args: string[]): void => {
    const identity = ["-c", "user.name=Bench", "-c", "user.email=bench@example.com", "-c", "commit.gpgsign=false"];
    execFileSync("git", [...identity, ...args], { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
  };
  git("init", "--quiet", "--initial-branch=main");
  const size = Math.max(FILES_PER_COMMIT, Math.ceil(sources.length / COMMITS));
  for (let at = 0; at < sources.length; at += size) {
    const some = sources.slice(at, at + size);
    for (const { path, text } of some) write(root, path, text);
    git("add", "--all", "--force");
    git("commit", "--quiet", "-m", `Add ${some.length} files of ${some[0]!.path.split("/")[0]}`);
  }
  const longest = sources.reduce((most, each) => (each.lines > most.lines ? each : most));
  for (let edit = 0; edit < EDITS; edit++) {
    for (let index = 0; index < EDITED_FILES; index++) {
      const { path } = sources[(edit * 97 + index * 31) % sources.length]!;
      write(root, path, edited(readFileSync(join(root, path), "utf8"), edit));
    }
    write(root, longest.path, edited(readFileSync(join(root, longest.path), "utf8"), edit));
    git("commit", "--quiet", "--all", "-m", `Change some lines, part ${edit + 1}`);
  }
  for (const { path, text } of sources.slice(0, EDITED_FILES)) write(root, path, `${text}// changed\n`);
  return { root, files: sources.length, longest: longest.path, word: "throw new" };
}

interface Source {
  readonly path: string;
  readonly text: string;
  readonly lines: number;
}

/** The first text files by path, without hidden ones and those with very long lines. */
function readSources(modules: string, most: number): Source[] {
  const sources: Source[] = [];
  for (const path of pathsBelow(modules)) {
    const source = readSource(modules, path);
    if (source !== undefined) sources.push(source);
    if (sources.length === most) break;
  }
  if (sources.length < most) throw new Error(`only ${sources.length} of ${most} files are installed here`);
  return sources;
}

function* pathsBelow(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.name.startsWith(".")) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* pathsBelow(path);
    else if (entry.isFile() && /\.(c?js|mjs|d\.ts|ts|md)$/.test(entry.name)) yield path;
  }
}

function readSource(modules: string, path: string): Source | undefined {
  const text = readFileSync(path, "utf8").replaceAll("\r", "");
  const lines = text.split("\n");
  if (lines.length > MOST_LINES || lines.some(({ length }) => length > MOST_LINE) || text === "") return undefined;
  return { path: relative(modules, path), text: text.endsWith("\n") ? text : `${text}\n`, lines: lines.length };
}

function write(root: string, path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

/** Every 29th line, another one with each edit. */
function edited(text: string, edit: number): string {
  const lines = text.split("\n");
  const changed = lines.map((line, index) => (index % 29 === edit && line !== "" ? `${line} // ${edit}` : line));
  return changed.join("\n");
}
