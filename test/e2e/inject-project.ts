import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeRepository } from "../make-repository.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

/** A sandbox with a repository in it. Files are byte strings, as `latin1` reads them. */
export interface InjectProject extends Sandbox {
  put(path: string, bytes: string): void;
  read(path: string): string;
  /** Every entry below the directory (the project unless given), without the repository's own. */
  tree(directory?: string): Record<string, string>;
  /** As `tree`, with what tells a file that was written again from one that was not. */
  identities(): Record<string, string>;
  /** Configures that tools which read AGENTS.md get a file of their own all the same. */
  keepOwnFiles(): void;
  /** Adds a file of every language that a built-in pack is about, so that all built-in packs are used. */
  speakEveryLanguage(): void;
  /** Adds a pack to the project's own layer. */
  pack(id: string, context: string, more?: string): void;
}

export function createProject(): InjectProject {
  const sandbox = createSandbox();
  const { cwd } = sandbox;
  makeRepository(cwd);
  const put = (path: string, bytes: string) => {
    mkdirSync(dirname(join(cwd, path)), { recursive: true });
    writeFileSync(join(cwd, path), Buffer.from(bytes, "latin1"));
  };
  return {
    ...sandbox,
    put,
    read: (path) => readFileSync(join(cwd, path), "latin1"),
    tree: (directory = cwd) => describeTree(directory, contentOf),
    identities: () => describeTree(cwd, (path) => `${identityOf(path)} ${contentOf(path)}`),
    keepOwnFiles: () =>
      put(".plimsoll/config.yaml", "own_files: [augment, cursor, devin-desktop, github-copilot, kiro, qwen-code]\n"),
    speakEveryLanguage() {
      for (const path of ["package.json", "tsconfig.json", "pyproject.toml", "schema.sql"]) put(path, "");
    },
    pack(id, context, more = "weight: 500") {
      put(`.plimsoll/packs/${id}/pack.yaml`, `id: ${id}\nname: ${id}\ndescription: d\ntags: [t]\n${more}\n`);
      sandbox.write(`.plimsoll/packs/${id}/context.md`, context);
    },
  };
}

function describeTree(root: string, describe: (path: string) => string): Record<string, string> {
  const names = readdirSync(root, { recursive: true, encoding: "utf8" }).sort();
  const kept = names.filter((name) => name !== ".git" && !name.startsWith(".git/"));
  return Object.fromEntries(kept.map((name) => [name, describe(join(root, name))]));
}

function contentOf(path: string): string {
  const stats = lstatSync(path);
  if (stats.isSymbolicLink()) return `-> ${readlinkSync(path)}`;
  return stats.isFile() ? readFileSync(path, "latin1") : "(directory)";
}

function identityOf(path: string): string {
  const { ino, mtimeNs, mode } = lstatSync(path, { bigint: true });
  return [ino, mtimeNs, mode].join(" ");
}
