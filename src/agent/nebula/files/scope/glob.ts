/** A plain glob as an automaton over characters, so that two of them can be walked at once. */
import type { PlainPattern } from "./expand-pattern.ts";

export interface Glob {
  /** State 0 is the start. */
  readonly states: readonly GlobState[];
  /** How everything that it matches begins, and ends. */
  readonly prefix: string;
  readonly suffix: string;
  /** The one path that it names, where nothing in it is special. */
  readonly path: string | undefined;
}

interface GlobState {
  readonly moves: readonly Move[];
  /** States that are reached without a character. */
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

const anything: GlobState = { moves: [{ characters: everything, to: 0 }], skips: [], accepts: true };

type Token =
  | { readonly kind: "one"; readonly characters: CharacterSet; readonly literal?: string }
  /** Within a segment; whole segments; everything from here on, a slash first. */
  | { readonly kind: "star" | "segments" | "below" };

export function compileGlob({ text, descends }: PlainPattern): Glob {
  const own = tokensOf(text);
  const isOpen = own.at(-1)?.kind === "below";
  const tokens: Token[] = descends && !isOpen ? [...own, { kind: "below" }] : own;
  const firstWild = tokens.findIndex((token) => !isLiteral(token));
  const lastWild = tokens.findLastIndex((token) => !isLiteral(token));
  const prefix = literalText(tokens.slice(0, firstWild === -1 ? undefined : firstWild));
  const isPath = firstWild === -1 || tokens[firstWild]?.kind === "below";
  const matchesAll = text === "" || text === "**";
  return {
    states: matchesAll ? [anything] : statesOf(tokens),
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

/** In order: what stands for segments only where a segment begins and ends with it, else two stars are one. */
const special = /(?<=^|\/)\*\*\/|\/\*\*$|\*+|\?|\[[!^]?(?:\][^\]/]*|[^\]/]+)\]|\\.|./gsu;

function tokensOf(text: string): Token[] {
  return [...text.matchAll(special)].map(([part]) => tokenOf(part));
}

function tokenOf(part: string): Token {
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
  return isNegated ? complement([...ranges, [slash, slash]]) : withoutSlash(ranges);
}

function withoutSlash(ranges: CharacterSet): CharacterSet {
  return ranges.flatMap(([from, to]) =>
    notSlash.flatMap(([low, high]) => {
      const part: [number, number] = [Math.max(from, low), Math.min(to, high)];
      return part[0] > part[1] ? [] : [part];
    }),
  );
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

function statesOf(tokens: readonly Token[]): GlobState[] {
  const states: GlobState[] = [];
  for (const [index, token] of tokens.entries())
    states.push(...statesFor(token, states.length, index === tokens.length - 1));
  if (tokens.at(-1)?.kind !== "below") states.push({ moves: [], skips: [], accepts: true });
  return states;
}

/** The states of one token, of which the first has the number `at`. The next token begins after them. */
function statesFor(token: Token, at: number, isLast: boolean): GlobState[] {
  const state = (moves: Move[], skips: number[] = [], accepts = false): GlobState => ({
    moves,
    skips,
    accepts,
  });
  if (token.kind === "one") return [state([{ characters: token.characters, to: at + 1 }])];
  if (token.kind === "star") return [state([{ characters: notSlash, to: at }], [at + 1])];
  const toSlash = { characters: [[slash, slash]] as CharacterSet };
  if (token.kind === "segments") {
    const within = { characters: notSlash, to: at + 1 };
    return [state([within], [at + 2]), state([within, { ...toSlash, to: at }])];
  }
  return [
    state([{ ...toSlash, to: at + 1 }], [], isLast),
    state([{ characters: everything, to: at + 1 }], [], isLast),
  ];
}
