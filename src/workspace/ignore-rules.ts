/** Which entries git would leave out: `.gitignore` files at every level and `.git/info/exclude`, read without git.
 *  A person's global excludes are not read, so that a tree counts the same on every machine. */
import { readFile, stat } from "node:fs/promises";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import ignore, { type Ignore } from "ignore";

export interface IgnoreRules {
  ignores(path: string, kind: "file" | "directory"): boolean;
  /** The rules that hold inside a directory; the same object when it adds none. */
  enter(directory: string): Promise<IgnoreRules>;
}

/** The rules that hold inside `directory`, those of the repository around it included. A directory that these rules
 *  leave out was named on purpose, so only the rules from itself downward count. */
export async function openIgnoreRules(directory: string): Promise<IgnoreRules> {
  const root = (await findUp(directory, ".git")) ?? directory;
  let rules = await rulesFrom(root, await excludesOf(root)).enter(root);
  for (const each of directoriesBetween(root, directory)) {
    if (rules.ignores(each, "directory")) return rulesFrom(directory, emptyRules()).enter(directory);
    rules = await rules.enter(each);
  }
  return rules;
}

/** The nearest directory, from here upward, that has an entry of that name. */
async function findUp(directory: string, name: string): Promise<string | undefined> {
  for (let current = resolve(directory); ; current = dirname(current)) {
    if (await exists(join(current, name))) return current;
    if (dirname(current) === current) return undefined;
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

function emptyRules(): Ignore {
  return ignore({ ignorecase: false });
}

async function excludesOf(root: string): Promise<Ignore> {
  const text = await readOptional(join(await gitDirectory(root), "info", "exclude"));
  return emptyRules().add(text ?? "");
}

/** In a worktree or submodule `.git` is a file that names the directory, which may name the shared one. */
async function gitDirectory(root: string): Promise<string> {
  const pointer = /^gitdir: (.+)$/m.exec((await readOptional(join(root, ".git"))) ?? "")?.[1];
  if (pointer === undefined) return join(root, ".git");
  const own = resolve(root, pointer);
  const shared = await readOptional(join(own, "commondir"));
  return shared === undefined ? own : resolve(own, shared.trim());
}

async function readOptional(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(() => undefined);
}

function directoriesBetween(root: string, directory: string): string[] {
  const names = relative(root, directory).split(sep).filter(Boolean);
  return names.map((_, index) => join(root, ...names.slice(0, index + 1)));
}

/** All rules stand in one list relative to the root, deeper files last: the last match wins, as in git. */
function rulesFrom(root: string, matcher: Ignore): IgnoreRules {
  const rules: IgnoreRules = {
    ignores: (path, kind) =>
      basename(path) === ".git" || matcher.ignores(fromRoot(root, path) + (kind === "directory" ? "/" : "")),
    enter: async (directory) => {
      const text = await readOptional(join(directory, ".gitignore"));
      if (text === undefined) return rules;
      const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
      const place = fromRoot(root, directory);
      return rulesFrom(
        root,
        emptyRules()
          .add(matcher)
          .add(place === "" ? lines : lines.flatMap(within(place))),
      );
    },
  };
  return rules;
}

function fromRoot(root: string, path: string): string {
  return relative(root, path).split(sep).join("/");
}

/** Rewrites a line of a deeper `.gitignore` so that it says the same from the root. A slash before the end binds a
 *  pattern to its directory; without one it holds at any depth below. */
function within(place: string): (line: string) => string[] {
  const prefix = place.replace(/[\\*?[\] ]/g, "\\$&");
  return (line) => {
    if (line.trim() === "" || line.startsWith("#")) return [];
    const negation = line.startsWith("!") ? "!" : "";
    const pattern = line.slice(negation.length);
    const bound = pattern.trimEnd().slice(0, -1).includes("/");
    return [`${negation}/${prefix}/${bound ? pattern.replace(/^\//, "") : `**/${pattern}`}`];
  };
}
