/** From a scope as people write it to plain globs: no braces, no `./`, no `//`, no trailing slash. */
import { expandBraces } from "../../../../text/index.ts";

/** One glob. `*`, `?`, `[…]`, `**` and `\` are special in it. */
export interface PlainPattern {
  readonly text: string;
  /** What it matches is a folder, or looks like one: what lies below belongs to it. */
  readonly descends: boolean;
}

/** Longer than any path that a system takes in one piece. */
const longestPattern = 1024;

/** `undefined` for what is too much to be looked at. */
export function expandPattern(pattern: string): PlainPattern[] | undefined {
  if (pattern.length > longestPattern) return undefined;
  const alternatives = expandBraces(pattern);
  return alternatives && [...new Set(alternatives)].flatMap(withNames).map(plain);
}

/** `[id]` is a set of letters, and in some frameworks the name of a folder: it stands for both. */
function withNames(pattern: string): string[] {
  if (!pattern.includes("[")) return [pattern];
  return [pattern, pattern.replace(/\\.|[[\]]/g, (each) => (each.length > 1 ? each : `\\${each}`))];
}

function plain(pattern: string): PlainPattern {
  const text = withoutUps(
    pattern
      .replace(/\/{2,}/g, "/")
      .replace(/^\//, "")
      .replace(/(?<=^|\/)(?:\.\/)+/g, "")
      .replace(/(?<=^|\/)\.$/, "")
      // Two in a row say no more than one.
      .replace(/(?<=^|\/)\*\*\/(?=\*\*(?:\/|$))/g, ""),
  );
  const withoutSlash = text.replace(/\/$/, "");
  const name = withoutSlash.slice(withoutSlash.lastIndexOf("/") + 1).replace(/\\(.)/g, "$1");
  return {
    text: withoutSlash,
    descends: text !== withoutSlash || !(isWild(withoutSlash) || fileName.test(name)),
  };
}

/** An extension, a capital, or one of the dot files that have neither: `main.ts`, `Makefile`, `.gitignore`. Without a slash at its end
 *  a folder is only told by its name, and a file that counted as one would meet every pattern that begins with two stars. */
const fileName = /.\.|^[A-Z]|^\.(?:env|\w+(?:ignore|attributes|rc))$/;

/** Whether its last segment has a star or a question mark. */
function isWild(text: string): boolean {
  return /[*?][^/]*$/.test(text.replace(/\\./g, ""));
}

/** `a/../b` is `b`; above a glob nobody knows where `..` leads. */
function withoutUps(text: string): string {
  const shorter = text.replace(/(?<=^|\/)(?!\.\.\/)[^/*?[\\]+\/\.\.(?:\/|$)/, "");
  return shorter === text ? text : withoutUps(shorter);
}
