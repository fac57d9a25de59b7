import { closeFence, wellFormed } from "../../text/index.ts";
import type { Counter } from "../../tokens/index.ts";
import { countUpTo } from "./count-up-to.ts";

/** One layer, ready to be fitted into whatever it is granted. */
export interface Layer {
  /** Tokens of the whole layer; infinite where it is larger than the whole budget. */
  readonly need: number;
  /** Tokens below which more is lost than items. */
  readonly least: number;
  /** The whole layer where it is within the limit, else what stays of it: "" where nothing can. */
  fit(limit: number): FittedLayer;
}

export interface FittedLayer {
  readonly text: string;
  readonly tokens: number;
  readonly truncated: boolean;
  /** Items of the fabric, lines of free text. */
  readonly omitted: number;
  /** More is lost than items: headings, or something of the discoveries. */
  readonly isBelowLeast: boolean;
  /** Tokens by which discoveries did not fit. */
  readonly overflow: number;
}

/** What layers are read with. */
export interface Measure {
  readonly counter: Counter;
  /** Of the whole budget. */
  readonly maxTokens: number;
}

/** A layer of which nothing is left out. */
export interface WholeLayer {
  /** Infinite where it is larger than the whole budget. */
  readonly need: number;
  /** Undefined where it is larger than the limit. */
  within(limit: number): FittedLayer | undefined;
}

/** As it was given, or without the white space around it where only that is too much. */
export function readWhole(text: string, measure: Measure): WholeLayer {
  const given = fitWhole(text, measure);
  let bare: { readonly fitted: FittedLayer | undefined } | undefined;
  const readBare = (): FittedLayer | undefined => {
    if (bare === undefined) {
      const body = withoutEdges(text);
      bare = { fitted: body === text ? given : fitWhole(body, measure) };
    }
    return bare.fitted;
  };
  return {
    get need() {
      return (given ?? readBare())?.tokens ?? Number.POSITIVE_INFINITY;
    },
    within(limit) {
      if (given !== undefined && given.tokens <= limit) return given;
      const fitted = readBare();
      return fitted !== undefined && fitted.tokens <= limit ? fitted : undefined;
    },
  };
}

function fitWhole(text: string, { counter, maxTokens }: Measure): FittedLayer | undefined {
  // Of what is too long only a beginning is looked at.
  const formed: Counter = { name: counter.name, count: (part) => counter.count(wellFormed(part)) };
  if (countUpTo(formed, text, maxTokens) > maxTokens) return undefined;
  const whole = wholeText(text);
  const tokens = counter.count(whole);
  if (tokens > maxTokens) return undefined;
  return { text: whole, tokens, truncated: false, omitted: 0, isBelowLeast: false, overflow: 0 };
}

/** Made safe to stand before another layer. */
export function wholeText(text: string): string {
  return closeFence(wellFormed(text));
}

/** In characters. What is longer means nothing. */
const mostIndentation = 100;

/** A text that is not blank, from its first line with something in it to its last character that can be seen. */
export function withoutEdges(text: string): string {
  const first = text.search(/\S/);
  const line = text.lastIndexOf("\n", first) + 1;
  return text.slice(first - line > mostIndentation ? first : line).trimEnd();
}
