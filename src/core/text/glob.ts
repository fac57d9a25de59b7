/** Tests a path against a glob in .gitignore syntax. This is our own code, because `*a*a*a*b` as a regular expression
 *  would take forever on a long name. */
export type Glob = (path: string) => boolean;

/** Supports `*` `?` `[a-z]` `[!a]` inside a name, `**` for any number of directories, and `{a,b}` for alternatives. A
 *  pattern without a slash matches at any depth; with one it starts at the root. Returns `undefined` if the braces make
 *  too many patterns. */
export function createGlob(pattern: string): Glob | undefined {
  const alternatives = expandBraces(pattern);
  if (alternatives === undefined) return undefined;
  const compiled = alternatives.map((pattern) => {
    const names = pattern.replace(/^\.?\//, "").split("/");
    const parts = pattern.includes("/") ? names : ["**", ...names];
    // In a name, `[…]` and `\\x` are one part each.
    return parts.map((part) => (part === "**" ? part : (part.match(/\[[!^]?\]?[^\]]*\]|\\.|./gsu) ?? [])));
  });
  return (path) => {
    const names = path.split("/");
    return compiled.some((parts) =>
      matchSequence(names.length, parts.length, {
        isStar: (part) => parts[part] === "**",
        matches: (name, part) => matchName(names[name] ?? "", parts[part] ?? []),
      }),
    );
  };
}

/** Returns whether items match parts, where a star is any number of items. On a mismatch only the last star takes one
 *  more item, since earlier stars could not do better. The time is at most items × parts. */
function matchSequence(
  items: number,
  parts: number,
  { isStar, matches }: { isStar(part: number): boolean; matches(item: number, part: number): boolean },
): boolean {
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

function matchName(name: string, parts: "**" | readonly string[]): boolean {
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
  if (!part.startsWith("[") || !part.endsWith("]")) return part === character;
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

/** Returns the globs that a glob with braces means: `a{b,c}d` means `abd` and `acd`. Braces without their own comma,
 *  and braces after a backslash, are part of a name. Returns `undefined` if there are too many globs. */
export function expandBraces(pattern: string): string[] | undefined {
  const done: string[] = [];
  const pending = [pattern];
  // A pattern with more alternatives is a mistake or an attack: `{a,b}` twenty times makes a million.
  const maxAlternatives = 256;
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const braces = outerBraces(next);
    if (braces === undefined) done.push(next);
    else {
      const { start, ends } = braces;
      const before = next.slice(0, start);
      const after = next.slice((ends.at(-1) ?? start) + 1);
      const opened = ends.map((end, index) => before + next.slice((ends[index - 1] ?? start) + 1, end) + after);
      pending.push(...opened.reverse());
    }
    if (done.length + pending.length > maxAlternatives) return undefined;
  }
  return done;
}

interface Braces {
  readonly start: number;
  /** The commas between the alternatives, then the closing brace. */
  readonly ends: number[];
}

/** Finds the first pair with its own comma. Outer braces are expanded before inner ones: the other order would return
 *  `a` twice for `{a,{b,c}}`. */
function outerBraces(pattern: string): Braces | undefined {
  const open: Braces[] = [];
  let found: Braces | undefined;
  for (const { 0: mark, index } of pattern.matchAll(/\\.|[{},]/gs)) {
    if (mark === "{") open.push({ start: index, ends: [] });
    if (mark === ",") open.at(-1)?.ends.push(index);
    const closed = mark === "}" ? open.pop() : undefined;
    if (closed === undefined || closed.ends.length === 0) continue;
    closed.ends.push(index);
    if (found === undefined || closed.start < found.start) found = closed;
    if (open.length === 0) break;
  }
  return found;
}
