/** Trees and repositories for tests, below one temporary directory. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { isFailure, type ToolFailure, type ToolResult } from "../session/index.ts";

/** A string is a file's text, and `{ link }` a symbolic link. */
export type Entries = Readonly<Record<string, string | Buffer | { readonly link: string }>>;

/** Registers cleanup for the end of the test, or with `afterAll` for the end of the file. */
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

/** A repository on branch main with one commit of everything. */
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

/** A person's own settings do not affect it. */
export function git(root: string, ...args: readonly string[]): string {
  return execFileSync("git", args, { cwd: root, env: gitTestEnvironment, encoding: "utf8", stdio: "pipe" });
}

const author = { NAME: "Ada", EMAIL: "ada@example.org", DATE: "2026-11-02T10:00:00Z" };

const gitTestEnvironment: NodeJS.ProcessEnv = {
  PATH: process.env.PATH,
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
  // Neither sample hooks in each repository nor a process for maintenance after each commit.
  GIT_TEMPLATE_DIR: "",
  ...{ GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "maintenance.auto", GIT_CONFIG_VALUE_0: "false" },
  ...Object.fromEntries(
    Object.entries(author).flatMap(([name, value]) => [
      [`GIT_AUTHOR_${name}`, value],
      [`GIT_COMMITTER_${name}`, value],
    ]),
  ),
};

/** Runs a function while nobody can read these paths of the tree. Root can read everything, so as root another user
 *  runs it. The modules it needs must already be loaded. */
export async function whileDenied<T>(root: string, paths: readonly string[], run: () => Promise<T>): Promise<T> {
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

/** Reads items like a session: as many as it wants, then the other facts. */
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
