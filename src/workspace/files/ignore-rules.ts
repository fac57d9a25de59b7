/** Which entries git would leave out: `.gitignore` files at every level and `.git/info/exclude`, read without git.
 *  A person's global excludes are not read, so that a tree counts the same on every machine. */
import { lstat, readFile, stat } from "node:fs/promises";
import { basename, join, relative, resolve, sep } from "node:path";
import ignore, { type Ignore } from "ignore";
import { exists, upward } from "./upward.ts";

export interface IgnoreRules {
  ignores(path: string, kind: "file" | "directory"): boolean;
  /** The rules that hold inside a directory; the same object when it adds none. `file` is its `.gitignore`, where the disk knows the
   *  directory by other bytes than those of its name. */
  enter(directory: string, file?: string | Buffer): Promise<IgnoreRules>;
}

/** The rules that hold inside `directory`, those of the repository around it included; without one, those from `top` down. A
 *  directory that these rules leave out was named on purpose, so only the rules from `top` downward count, or those from itself. */
export async function openIgnoreRules(directory: string, top: string = directory): Promise<IgnoreRules> {
  const root = (await repositoryAround(directory)) ?? top;
  return (
    (await rulesBetween(root, directory, await excludesOf(root))) ??
    (await rulesBetween(top, directory, emptyRules())) ??
    rulesFrom(directory, emptyRules()).enter(directory)
  );
}

/** Undefined where they leave the directory out, or one on the way to it. */
async function rulesBetween(
  root: string,
  directory: string,
  excludes: Ignore,
): Promise<IgnoreRules | undefined> {
  let rules = await rulesFrom(root, excludes).enter(root);
  for (const each of directoriesBetween(root, directory)) {
    if (rules.ignores(each, "directory")) return undefined;
    rules = await rules.enter(each);
  }
  return rules;
}

async function repositoryAround(directory: string): Promise<string | undefined> {
  for (const current of upward(directory)) if (await exists(join(current, ".git"))) return current;
  return undefined;
}

function emptyRules(): Ignore {
  return ignore({ ignorecase: false });
}

async function excludesOf(root: string): Promise<Ignore> {
  const text = await readOptional(join(await gitDirectory(root), "info", "exclude"));
  return emptyRules().add(linesOf(text ?? ""));
}

/** In a worktree or submodule `.git` is a file that names the directory, which may name the shared one. */
async function gitDirectory(root: string): Promise<string> {
  const pointer = /^gitdir: (.+)$/m.exec((await readOptional(join(root, ".git"))) ?? "")?.[1];
  if (pointer === undefined) return join(root, ".git");
  const own = resolve(root, pointer);
  const shared = await readOptional(join(own, "commondir"));
  return shared === undefined ? own : resolve(own, shared.trim());
}

/** Every entry of a tree is held against every line. Git has a limit as well (dir.c, PATTERN_MAX_FILE_SIZE), of 100 MB. */
const maxRulesBytes = 1024 * 1024;

/** A pipe would be waited for, and a device never ends. Inside the tree git follows no link to its rules either. */
async function readOptional(
  path: string | Buffer,
  look: typeof stat | typeof lstat = stat,
): Promise<string | undefined> {
  try {
    const stats = await look(path);
    return stats.isFile() && stats.size <= maxRulesBytes ? await readFile(path, "utf8") : undefined;
  } catch {
    return undefined;
  }
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
    enter: async (directory, file = join(directory, ".gitignore")) => {
      const text = await readOptional(file, lstat);
      if (text === undefined) return rules;
      const lines = linesOf(text);
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

function linesOf(text: string): string[] {
  const lines = text.replace(/^\uFEFF/, "").split("\n");
  return lines.map((line) => onOneLine(line.replace(/\r$/, ""))).filter(isUsable);
}

/** No path is longer. */
const longestPattern = 4_096;
/** In one name, and of folders. The library makes a regular expression of a pattern, which takes time that grows with each of them: four
 *  in a name of 250 letters can take a second. */
const [mostStars, mostDoubleStars] = [3, 4];

/** Anybody may have written it: a pattern that takes for ever, or that the library cannot read, matches nothing. */
function isUsable(line: string): boolean {
  if (line.length > longestPattern) return false;
  if (!/[*?[\\]/.test(line)) return true;
  const segments = line.split("/");
  if (segments.filter((each) => each === "**").length > mostDoubleStars) return false;
  if (segments.some((each) => (each.match(/\*+/g) ?? []).length > mostStars)) return false;
  try {
    emptyRules().add(line).ignores("a");
    return true;
  } catch {
    return false;
  }
}

function fromRoot(root: string, path: string): string {
  // Asked for every entry of a tree: nearly always the start of the path is the root's, and looking is quicker than `relative`.
  const way = path.startsWith(root + sep) ? path.slice(root.length + 1) : relative(root, path);
  return onOneLine(sep === "/" ? way : way.replaceAll(sep, "/"));
}

/** The matcher's `**` ends at a line break, git's does not: in patterns and paths alike another character stands for it. */
function onOneLine(text: string): string {
  return text.replace(/[\n\r\u2028\u2029]/g, (character) =>
    String.fromCharCode(0xf000 + (character.charCodeAt(0) % 0x100)),
  );
}

/** Rewrites a line of a deeper `.gitignore` so that it says the same from the root. A slash before the end binds a
 *  pattern to its directory; without one it holds at any depth below. */
function within(place: string): (line: string) => string[] {
  const prefix = place.replace(/[\\*?[\] ]/g, "\\$&");
  return (line) => {
    if (line.trim() === "" || line.startsWith("#")) return [];
    const negation = line.startsWith("!") ? "!" : "";
    const pattern = line.slice(negation.length);
    if (/^ *$/.test(pattern)) return [];
    const bound = pattern.trimEnd().slice(0, -1).includes("/");
    return [`${negation}/${prefix}/${bound ? pattern.replace(/^\//, "") : `**/${pattern}`}`];
  };
}
