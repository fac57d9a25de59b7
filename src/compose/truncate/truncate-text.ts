/** Free text: its beginning stays. */
import { closeFence, isInsidePair, wellFormed, withoutBareFence } from "../../text/index.ts";
import type { Counter } from "../../tokens/index.ts";
import { countUpTo } from "./count-up-to.ts";
import { largestWithin } from "./largest-within.ts";
import { type Layer, type Measure, readWhole, withoutEdges } from "./layer.ts";

const marker = "[truncated]";

/** A layer of free text, project or prior work. */
export function createTextLayer(text: string, measure: Measure): Layer {
  const { counter } = measure;
  const whole = readWhole(text, measure);
  let lines: number | undefined;
  return {
    need: whole.need,
    least: 0,
    fit(limit) {
      const fitted = whole.within(limit);
      if (fitted !== undefined) return fitted;
      const body = withoutEdges(text);
      const cut = truncateText(body, { counter, limit, ending: `\n${marker}` });
      lines ??= countLines(body);
      const omitted = lines - wholeLines(body, cut.kept);
      const facts = { truncated: true, omitted, isBelowLeast: false, overflow: 0 };
      return { ...facts, text: cut.text, tokens: counter.count(cut.text) };
    },
  };
}

export interface TruncateTextOptions {
  readonly counter: Counter;
  readonly limit: number;
  /** What stands before the text. */
  readonly opening?: string | undefined;
  /** What stands behind the cut, its line break included. */
  readonly ending: string;
}

export interface TruncatedText {
  /** "" where nothing of the text can stay. */
  readonly text: string;
  /** Characters of the given text that stayed. */
  readonly kept: number;
}

/** The beginning of a text that is too long as a whole, so that it fits with what stands around it: whole lines, else whole words, else whole characters, and no fence left open. */
export function truncateText(
  text: string,
  { counter, limit, opening = "", ending }: TruncateTextOptions,
): TruncatedText {
  const beginningAt = (length: number): string =>
    withoutBareFence(text.slice(0, cutAt(text, length)).trimEnd());
  const finish = (beginning: string): string =>
    beginning === "" ? "" : opening + wellFormed(closeFence(beginning)) + ending;
  const length = largestWithin({
    limit,
    most: text.length - 1,
    first: limit * 4,
    tokensAt: (at) => countUpTo(counter, finish(beginningAt(at)), limit),
  });
  const beginning = beginningAt(length);
  // A fence may have been closed as it was closed in the text.
  const closed = closeFence(beginning);
  const kept = text.startsWith(closed) ? closed.length : beginning.length;
  return { text: finish(beginning), kept };
}

/** Where to cut so that at most `length` characters stay: at the last line break, else the last blank, unless that would give up most of
 *  what fits, as it would in a text of one long line under a title. */
function cutAt(text: string, length: number): number {
  const mostLost = Math.ceil(length / 4);
  const line = text.lastIndexOf("\n", length);
  if (line >= mostLost && line > 0) return line;
  for (let at = length; at >= mostLost && at > 0; at--) if (isSpace(text.charCodeAt(at))) return at;
  return isInsidePair(text, length) ? length - 1 : length;
}

/** Lines with something in them. No line is taken out of the text, and of most only the first character is looked at: there may be
 *  millions. */
export function countLines(text: string): number {
  let lines = 0;
  for (let start = 0; start < text.length; ) {
    const feed = text.indexOf("\n", start);
    const end = feed === -1 ? text.length : feed;
    while (start < end && isSpace(text.charCodeAt(start))) start++;
    if (start < end) lines++;
    start = end + 1;
  }
  return lines;
}

/** How many of its lines are whole in the first `kept` characters of a text. */
export function wholeLines(text: string, kept: number): number {
  const end = text.indexOf("\n", kept);
  const isWhole = text.slice(kept, end === -1 ? undefined : end).trim() === "";
  return countLines(text.slice(0, isWhole ? kept : text.lastIndexOf("\n", kept - 1) + 1));
}

/** Blank, tab, carriage return. */
function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0d;
}
