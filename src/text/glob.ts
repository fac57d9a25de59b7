import { expandBraces } from "./expand-braces.ts";

/** Globs as .gitignore has them. Own code: turned into a regular expression, `*a*a*a*b` would take for ever on a long name. */
export type Glob = (path: string) => boolean;

/** `*` `?` `[a-z]` `[!a]` inside a name, `**` for any number of directories, `{a,b}` for either. A pattern without a slash holds at
 *  any depth; with one it begins at the root. Undefined when the braces make too many patterns. */
export function createGlob(pattern: string): Glob | undefined {
  const alternatives = expandBraces(pattern);
  if (alternatives === undefined) return undefined;
  const compiled = alternatives.map(compile);
  return (path) => {
    const names = path.split("/");
    return compiled.some((parts) => matchParts(names, parts));
  };
}

/** `**`, or the parts of a name: `[…]` and `\\x` are one each. */
type Part = "**" | readonly string[];

function compile(pattern: string): readonly Part[] {
  const names = pattern.replace(/^\.?\//, "").split("/");
  const parts = pattern.includes("/") ? names : ["**", ...names];
  return parts.map((part) => (part === "**" ? part : (part.match(/\[[!^]?\]?[^\]]*\]|\\.|./gsu) ?? [])));
}

function matchParts(names: readonly string[], parts: readonly Part[]): boolean {
  return matchSequence(names.length, parts.length, {
    isStar: (part) => parts[part] === "**",
    matches: (name, part) => matchName(names[name] ?? "", parts[part] ?? []),
  });
}

interface Sequence {
  isStar(part: number): boolean;
  matches(item: number, part: number): boolean;
}

/** Whether items match parts where a star is any number of items. On a mismatch only the last star takes one more, as earlier ones
 *  could not do better: time is items × parts at most. */
function matchSequence(items: number, parts: number, { isStar, matches }: Sequence): boolean {
  let item = 0;
  let part = 0;
  let star = -1;
  let taken = 0;
  while (item < items) {
    if (part < parts && isStar(part)) {
      star = part++;
      taken = item;
    } else if (part < parts && matches(item, part)) {
      item++;
      part++;
    } else if (star >= 0) {
      part = star + 1;
      item = ++taken;
    } else return false;
  }
  while (part < parts && isStar(part)) part++;
  return part === parts;
}

function matchName(name: string, parts: Part): boolean {
  const characters = /[\ud800-\udfff]/.test(name) ? [...name] : name;
  return matchSequence(characters.length, parts.length, {
    isStar: (part) => parts[part] === "*",
    matches: (at, part) => matchCharacter(characters[at] ?? "", parts[part] ?? ""),
  });
}

function matchCharacter(character: string, part: string): boolean {
  if (part === "?") return true;
  if (part.length === 1) return part === character;
  if (part.startsWith("\\")) return part.slice(1) === character;
  return part.startsWith("[") && part.endsWith("]") ? matchClass(character, part) : part === character;
}

function matchClass(character: string, part: string): boolean {
  const negated = /^\[[!^]/.test(part);
  const members = [...part.slice(negated ? 2 : 1, -1)];
  let found = false;
  for (let at = 0; at < members.length; at++) {
    const [first = "", dash, last] = members.slice(at, at + 3);
    const isRange = dash === "-" && last !== undefined;
    if (isRange) at += 2;
    found ||= isRange ? first <= character && character <= last : first === character;
  }
  return found !== negated;
}
