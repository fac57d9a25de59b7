/** Trees and repositories that tests read, below one temporary directory. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { isFailure, type ToolFailure, type ToolResult } from "../../session/index.ts";

/** A string is a file's text, and `{ link }` a symbolic link. */
export type Entries = Readonly<Record<string, string | Buffer | { readonly link: string }>>;

/** Takes what is to be done at the end of the test, or with `afterAll` of the file. */
export type WhenOver = (clean: () => void) => void;

export function createTree(entries: Entries, whenOver: WhenOver = onTestFinished): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "tools-")));
  whenOver(() => rmSync(root, { recursive: true, force: true }));
  addEntries(root, entries);
  return root;
}

export function addEntries(root: string, entries: Entries): void {
  for (const [path, entry] of Object.entries(entries)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    if (typeof entry === "string" || Buffer.isBuffer(entry)) writeFileSync(join(root, path), entry);
    else symlinkSync(entry.link, join(root, path));
  }
}

/** A repository on branch main in which everything is committed once. */
export function createRepository(entries: Entries, whenOver: WhenOver = onTestFinished): string {
  const root = createTree(entries, whenOver);
  git(root, "init", "--quiet", "--initial-branch=main");
  commit(root, "Add everything");
  return root;
}

export function commit(root: string, message: string): void {
  git(root, "add", "--all");
  git(root, "commit", "--quiet", "--allow-empty", "-m", message);
}

/** A person's own settings do not reach it. */
export function git(root: string, ...args: readonly string[]): string {
  return execFileSync("git", args, { cwd: root, env: gitTestEnvironment, encoding: "utf8", stdio: "pipe" });
}

const author = { NAME: "Ada", EMAIL: "ada@example.org", DATE: "2026-11-02T10:00:00Z" };

const gitTestEnvironment: NodeJS.ProcessEnv = {
  PATH: process.env.PATH,
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
  ...Object.fromEntries(
    Object.entries(author).flatMap(([name, value]) => [
      [`GIT_AUTHOR_${name}`, value],
      [`GIT_COMMITTER_${name}`, value],
    ]),
  ),
};

/** Runs while nobody may read these paths of the tree. Root may read everything: where tests run as root, another user runs it, and what
 *  it loads must have been loaded before. */
export async function whileDenied<T>(
  root: string,
  paths: readonly string[],
  run: () => Promise<T>,
): Promise<T> {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) execFileSync("chown", ["-R", String(nobody), root]);
  for (const path of paths) chmodSync(join(root, path), 0);
  if (isRoot) process.seteuid?.(nobody);
  try {
    return await run();
  } finally {
    if (isRoot) process.seteuid?.(0);
    for (const path of paths) chmodSync(join(root, path), 0o700);
  }
}

const nobody = 65_534;

export interface ReadResult extends Omit<ToolResult, "items" | "total" | "warnings" | "more"> {
  readonly items: readonly unknown[];
  readonly total: number | undefined;
  readonly more: boolean;
  readonly warnings: readonly string[];
}

/** Reads items as a session does: as many as it wants, then it asks for the rest of the facts. */
export async function readResult(
  result: ToolResult | ToolFailure,
  most: number = Number.POSITIVE_INFINITY,
): Promise<ReadResult> {
  if (isFailure(result)) throw new Error(`${result.code}: ${result.message}`);
  const items: unknown[] = [];
  let ended = true;
  for await (const item of result.items) {
    if (items.length === most) {
      ended = false;
      break;
    }
    items.push(item);
  }
  const ask = <T>(value: T | (() => T)): T => (value instanceof Function ? value() : value);
  const total = ask(result.total);
  const more = !ended || (ask(result.more) ?? (total !== undefined && total > result.offset + items.length));
  return { ...result, items, total, more, warnings: ask(result.warnings) ?? [] };
}
