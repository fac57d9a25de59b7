/** Applies git's ignore rules without git: `.gitignore` files at every level and `.git/info/exclude`. Does not read a
 *  person's global excludes, so a tree has the same files on every machine. */
import { basename, join, relative, sep } from "node:path";
import ignore, { type Ignore } from "ignore";
import { repositoryAround } from "./find-root.ts";
import { foldersDown } from "./paths.ts";
import { readForeign } from "./read-foreign.ts";

export interface IgnoreRules {
  ignores(path: string, kind: "file" | "directory"): boolean;
  /** Returns the rules inside a directory, or the same object if the directory adds none. Pass its `.gitignore` as
   *  `file` if the directory's name on the disk has other bytes. */
  enter(directory: string, file?: string | Buffer): Promise<IgnoreRules>;
}

/** Returns the rules inside `directory`, including the rules of the repository around it. Without a repository, the
 *  rules start at `top`. If these rules ignore the directory, the caller named it on purpose: then only the rules from
 *  `top` or from the directory itself apply. */
export async function openIgnoreRules(directory: string, top: string = directory): Promise<IgnoreRules> {
  const { root, shared } = repositoryAround(directory) ?? { root: top };
  const text = shared && readOptional(join(shared, "info", "exclude"));
  return (
    (await rulesBetween(root, directory, emptyRules().add(parsePatterns(text ?? "")))) ??
    (await rulesBetween(top, directory, emptyRules())) ??
    rulesFrom(directory, emptyRules()).enter(directory)
  );
}

/** Returns the rules inside a folder of `root`, or `undefined` if git ignores the folder. */
export async function openRulesBelow(root: string, folder: string): Promise<IgnoreRules | undefined> {
  return descend(await openIgnoreRules(root), root, folder);
}

async function rulesBetween(root: string, directory: string, excludes: Ignore): Promise<IgnoreRules | undefined> {
  return descend(await rulesFrom(root, excludes).enter(root), root, directory);
}

/** Returns `undefined` if the rules ignore the directory or one on the way to it. */
async function descend(start: IgnoreRules, root: string, directory: string): Promise<IgnoreRules | undefined> {
  let rules = start;
  for (const each of foldersDown(root, directory).slice(1)) {
    if (rules.ignores(each, "directory")) return undefined;
    rules = await rules.enter(each);
  }
  return rules;
}

function emptyRules(): Ignore {
  return ignore({ ignorecase: false });
}

function readOptional(path: string | Buffer, refuseLink = false): string | undefined {
  // Every entry of a tree is compared with every line. Git has a limit too (dir.c, PATTERN_MAX_FILE_SIZE): 100
  // MB.
  const maxRulesBytes = 1024 * 1024;
  const read = readForeign(path, { refuseLink, maxBytes: maxRulesBytes });
  return Buffer.isBuffer(read) ? read.toString("utf8") : undefined;
}

/** All rules are in one list relative to the root, deeper files last. The last match wins, as in git. */
function rulesFrom(root: string, matcher: Ignore): IgnoreRules {
  const rules: IgnoreRules = {
    ignores: (path, kind) =>
      basename(path) === ".git" || matcher.ignores(fromRoot(root, path) + (kind === "directory" ? "/" : "")),
    enter: async (directory, file = join(directory, ".gitignore")) => {
      // Inside the tree git does not follow a link to its rules either.
      const text = readOptional(file, true);
      if (text === undefined) return rules;
      const lines = parsePatterns(text);
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

function parsePatterns(text: string): string[] {
  const lines = text.replace(/^\uFEFF/, "").split("\n");
  // Git's own template of this file has only comments. Checking their stars would load half of the library.
  const patterns = lines.filter((line) => line !== "" && !line.startsWith("#"));
  return patterns.map((line) => onOneLine(line.replace(/\r$/, ""))).filter(isUsable);
}

/** The limits of stars in one name and of `**` folders. The library turns a pattern into a regular expression, and each
 *  star multiplies the time: four in a name of 250 letters can take a second. */
const [mostStars, mostDoubleStars] = [3, 4];

/** Anybody may have written the pattern. One that takes too long, or that the library cannot read, matches nothing. */
function isUsable(line: string): boolean {
  // No path is longer.
  const maxPattern = 4_096;
  if (line.length > maxPattern) return false;
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
  // Called for every entry of a tree. The path nearly always starts with the root, and this check is faster than
  // `relative`.
  const way = path.startsWith(root + sep) ? path.slice(root.length + 1) : relative(root, path);
  return onOneLine(sep === "/" ? way : way.replaceAll(sep, "/"));
}

/** The library's `**` ends at a line break, git's does not. So patterns and paths use another character for it. */
function onOneLine(text: string): string {
  return text.replace(/[\n\r\u2028\u2029]/g, (character) =>
    String.fromCharCode(0xf000 + (character.charCodeAt(0) % 0x100)),
  );
}

/** Rewrites a line of a deeper `.gitignore` so that it means the same from the root. A slash before the end binds a
 *  pattern to its directory. Without one it applies at any depth below. */
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
