/** A glob as an automaton over characters, so that two of them can be walked together. */
import { expandBraces } from "../../core/text/index.ts";

export interface ScopeGlob {
  /** State 0 is the start. */
  readonly states: readonly GlobState[];
  /** The literal beginning and end of everything that it matches. */
  readonly prefix: string;
  readonly suffix: string;
  /** The path that it names if it has no special characters. */
  readonly path: string | undefined;
}

interface GlobState {
  readonly moves: readonly Move[];
  /** States reached without reading a character. */
  readonly skips: readonly number[];
  readonly accepts: boolean;
}

interface Move {
  readonly characters: CharacterSet;
  readonly to: number;
}

/** Ranges of code points, both ends included, in order. */
export type CharacterSet = readonly (readonly [from: number, to: number])[];

const last = 0x10ffff;
const slash = 0x2f;
const everything: CharacterSet = [[0, last]];
const notSlash: CharacterSet = complement([[slash, slash]]);

type Token =
  | { readonly kind: "one"; readonly characters: CharacterSet; readonly literal?: string }
  /** Inside a segment; whole segments; everything below, starting with a slash. */
  | { readonly kind: "star" | "segments" | "below" };

function compileGlob({ text, descends }: PlainPattern): ScopeGlob {
  // `**` means whole segments only if it is a whole segment; otherwise it is `*`.
  const special = /(?<=^|\/)\*\*\/|\/\*\*$|\*+|\?|\[[!^]?(?:\][^\]/]*|[^\]/]+)\]|\\.|./gsu;
  const own = Array.from(text.matchAll(special), ([part]) => readToken(part));
  const isOpen = own.at(-1)?.kind === "below";
  const tokens: Token[] = descends && !isOpen ? [...own, { kind: "below" }] : own;
  const firstWild = tokens.findIndex((token) => !isLiteral(token));
  const lastWild = tokens.findLastIndex((token) => !isLiteral(token));
  const prefix = literalText(tokens.slice(0, firstWild === -1 ? undefined : firstWild));
  const isPath = firstWild === -1 || tokens[firstWild]?.kind === "below";
  const matchesAll = text === "" || text === "**";
  const anything: GlobState = { moves: [{ characters: everything, to: 0 }], skips: [], accepts: true };
  return {
    states: matchesAll ? [anything] : createStates(tokens),
    prefix,
    suffix: literalText(tokens.slice(lastWild + 1)),
    path: isPath && !matchesAll ? prefix : undefined,
  };
}

function isLiteral(token: Token): boolean {
  return token.kind === "one" && token.literal !== undefined;
}

function literalText(tokens: readonly Token[]): string {
  return tokens.map((token) => (token.kind === "one" ? token.literal : "")).join("");
}

function readToken(part: string): Token {
  if (part === "**/") return { kind: "segments" };
  if (part === "/**") return { kind: "below" };
  if (part.startsWith("*")) return { kind: "star" };
  if (part === "?") return { kind: "one", characters: notSlash };
  if (part.startsWith("[") && part.length > 2) return { kind: "one", characters: bracketSet(part) };
  const literal = part.startsWith("\\") ? part.slice(1) || part : part;
  const code = literal.codePointAt(0)!;
  return { kind: "one", characters: [[code, code]], literal };
}

function bracketSet(part: string): CharacterSet {
  const isNegated = /^\[[!^]/.test(part) && part.length > 3;
  const inside = [...part.slice(isNegated ? 2 : 1, -1)].map((each) => each.codePointAt(0)!);
  const ranges: [number, number][] = [];
  for (let at = 0; at < inside.length; at++) {
    const isRange = inside[at + 1] === 0x2d && at + 2 < inside.length;
    ranges.push([inside[at]!, inside[isRange ? at + 2 : at]!]);
    if (isRange) at += 2;
  }
  // No bracket matches a slash.
  const outside = complement([...ranges, [slash, slash]]);
  return isNegated ? outside : complement([...complement(ranges), [slash, slash]]);
}

function complement(ranges: CharacterSet): CharacterSet {
  const gaps: [number, number][] = [];
  let next = 0;
  for (const [from, to] of [...ranges].sort((a, b) => a[0] - b[0])) {
    if (from > next) gaps.push([next, from - 1]);
    if (to >= from) next = Math.max(next, to + 1);
  }
  if (next <= last) gaps.push([next, last]);
  return gaps;
}

function createStates(tokens: readonly Token[]): GlobState[] {
  const states: GlobState[] = [];
  const add = (moves: Move[], skips: number[] = [], accepts = false) => states.push({ moves, skips, accepts });
  const onSlash: CharacterSet = [[slash, slash]];
  for (const [index, token] of tokens.entries()) {
    // The token's first state. The next token starts after its last one.
    const at = states.length;
    const next = at + 1;
    if (token.kind === "one") add([{ characters: token.characters, to: next }]);
    else if (token.kind === "star") add([{ characters: notSlash, to: at }], [next]);
    else if (token.kind === "segments") {
      const within = { characters: notSlash, to: next };
      add([within], [at + 2]);
      add([within, { characters: onSlash, to: at }]);
    } else {
      const isLast = index === tokens.length - 1;
      add([{ characters: onSlash, to: next }], [], isLast);
      add([{ characters: everything, to: next }], [], isLast);
    }
  }
  if (tokens.at(-1)?.kind !== "below") add([], [], true);
  return states;
}

// From a written scope to plain globs: without braces, `./`, `//` and a trailing slash.

/** One glob. `*`, `?`, `[…]`, `**` and `\` are special. */
interface PlainPattern {
  readonly text: string;
  /** Whether it also matches everything below, because it names a folder or looks like one. */
  readonly descends: boolean;
}

/** Reads one pattern of a scope as globs. Returns undefined if it is too long or expands to too many. */
export function readScope(pattern: string): ScopeGlob[] | undefined {
  // Longer than any path that systems accept.
  if (pattern.length > 1024) return undefined;
  const alternatives = expandBraces(pattern);
  if (alternatives === undefined) return undefined;
  // `[id]` is a set of letters, or in some frameworks the name of a folder. It counts as both.
  const patterns = [...new Set(alternatives)].flatMap((each) => {
    if (!each.includes("[")) return each;
    return [each, each.replace(/\\.|[[\]]/g, (part) => (part.length > 1 ? part : `\\${part}`))];
  });
  return patterns.map(simplify).map(compileGlob);
}

function simplify(pattern: string): PlainPattern {
  const text = withoutUps(
    pattern
      .replace(/\/{2,}/g, "/")
      .replace(/^\//, "")
      .replace(/(?<=^|\/)(?:\.\/)+/g, "")
      .replace(/(?<=^|\/)\.$/, "")
      // Two in a row mean the same as one.
      .replace(/(?<=^|\/)\*\*\/(?=\*\*(?:\/|$))/g, ""),
  );
  const withoutSlash = text.replace(/\/$/, "");
  const name = withoutSlash.slice(withoutSlash.lastIndexOf("/") + 1).replace(/\\(.)/g, "$1");
  const hasWildName = /[*?][^/]*$/.test(withoutSlash.replace(/\\./g, ""));
  // Names that look like files: with an extension, a capital, or a known dot file, such as `main.ts`, `Makefile`,
  // `.gitignore`. A file that counted as a folder would overlap every pattern that starts with two stars.
  const fileName = /.\.|^[A-Z]|^\.(?:env|\w+(?:ignore|attributes|rc))$/;
  return {
    text: withoutSlash,
    descends: text !== withoutSlash || !(hasWildName || fileName.test(name)),
  };
}

/** Turns `a/../b` into `b`. `..` after a glob stays, because its target is unknown. */
function withoutUps(text: string): string {
  const shorter = text.replace(/(?<=^|\/)(?!\.\.\/)[^/*?[\\]+\/\.\.(?:\/|$)/, "");
  return shorter === text ? text : withoutUps(shorter);
}

/** How many steps are still allowed. Without this limit some patterns would take forever. Comparing the ends of two
 *  globs costs 1. */
export interface StepBudget {
  left: number;
}

/** Whether some path matches both. If the budget runs out, returns false and `left` is below 0. */
export function globsOverlap(one: ScopeGlob, two: ScopeGlob, budget: StepBudget): boolean {
  if (!couldOverlap(one, two)) return false;
  if (names(one, two) || names(two, one)) return true;
  const areBothPaths = one.path !== undefined && two.path !== undefined;
  return !areBothPaths && meet(one, two, budget);
}

/** Rules out most pairs quickly: globs with different beginnings or ends cannot overlap. */
export function couldOverlap(one: ScopeGlob, two: ScopeGlob): boolean {
  if (names(one, two) || names(two, one)) return true;
  return (
    (one.prefix.startsWith(two.prefix) || two.prefix.startsWith(one.prefix)) &&
    (one.suffix.endsWith(two.suffix) || two.suffix.endsWith(one.suffix))
  );
}

/** Whether `one` matches only the path that `two` names, or only paths below it. */
function names(one: ScopeGlob, two: ScopeGlob): boolean {
  const { path } = two;
  if (path === undefined || !one.prefix.startsWith(path)) return false;
  return one.prefix[path.length] === "/" || one.path === path;
}

/** Walks both automata together and visits each pair of states once. */
function meet(one: ScopeGlob, two: ScopeGlob, budget: StepBudget): boolean {
  const width = two.states.length;
  const seen = new Uint8Array(one.states.length * width);
  const pending = [0];
  seen[0] = 1;
  for (let pair = pending.pop(); pair !== undefined; pair = pending.pop()) {
    // Measured: a step costs as much as comparing the ends of 8 pairs.
    budget.left -= 8;
    if (budget.left < 0) return false;
    if (one.states[Math.floor(pair / width)]!.accepts && two.states[pair % width]!.accepts) return true;
    for (const next of nextPairs([one, two], pair)) {
      if (seen[next] === 0) pending.push(next);
      seen[next] = 1;
    }
  }
  return false;
}

function nextPairs([one, two]: readonly [ScopeGlob, ScopeGlob], pair: number): number[] {
  const width = two.states.length;
  const [first, second] = [Math.floor(pair / width), pair % width];
  const [a, b] = [one.states[first]!, two.states[second]!];
  const next = [...a.skips.map((to) => to * width + second), ...b.skips.map((to) => first * width + to)];
  for (const move of a.moves) {
    for (const other of b.moves) {
      if (move.characters.some(([from, to]) => other.characters.some(([low, high]) => from <= high && low <= to)))
        next.push(move.to * width + other.to);
    }
  }
  return next;
}
