import { characterStart } from "../../text/index.ts";
import { jsonText, type LongText, longestText } from "./long-text.ts";
import { details, following, measureDraft, type PageDraft, settlePage } from "./page-draft.ts";
import type { Page } from "./page-source.ts";
import type { Detail, PageContent } from "./render-page.ts";

interface Part {
  readonly long: LongText;
  readonly from: number;
  readonly detail: Detail;
}

/** A page with a part of its first item, which is larger than a page. The parts of all pages, joined, are the text that was cut. */
export function fitPart(draft: PageDraft): Page {
  const { source, read } = draft;
  const [first] = read.items;
  const item = source.start === undefined ? plainCopy(first) : first;
  const from = source.start?.from ?? 0;
  let last: Part | undefined;
  for (const part of choicesOf(item, draft)) {
    const end = longestEnd(draft, part);
    if (end - from >= leastProgress(draft, part)) return settlePart(draft, part, end);
    last = part;
  }
  // A page must go on, if only by one character.
  return settlePart(draft, last!, nextCharacter(last!.long.text, from));
}

/** As it comes back from the store, where the later parts are taken from. */
function plainCopy(item: unknown): unknown {
  return typeof item === "string" ? item : JSON.parse(JSON.stringify(item));
}

/** From what tells most to what takes least room. */
function* choicesOf(item: unknown, draft: PageDraft): Generator<Part> {
  for (const long of textsOf(item, draft)) {
    for (const detail of details) yield { long, from: draft.source.start?.from ?? 0, detail };
  }
}

/** A long pointer, or a large item around the string, leaves no room for the string: then the whole JSON is what is cut. */
function* textsOf(item: unknown, { source: { start }, options }: PageDraft): Generator<LongText> {
  const longest = start?.at === "json" ? undefined : longestText(item);
  if (longest !== undefined && (start !== undefined || isWorthwhile(longest, options.allocation)))
    yield longest;
  if (start === undefined || longest === undefined) yield jsonText(item);
}

/** Looked at by length alone: an item of 10 MB without its longest string may still be one of 10 MB. */
function isWorthwhile(long: LongText, allocation: number): boolean {
  return long.pointer!.length <= 100 && JSON.stringify(long.shell("")).length <= allocation * 8;
}

/** How far a part must get to be worth its page; otherwise less is said beside it, or the JSON is cut instead. */
function leastProgress({ options, source }: PageDraft, { long, from, detail }: Part): number {
  const rest = long.text.length - from;
  const isLastResort = long.at === "json" || source.start !== undefined;
  if (!isLastResort) return Math.min(rest, Math.ceil(options.allocation / 2));
  return Math.min(rest, detail === "bare" ? 1 : 64);
}

/** The furthest end at which the page fits, to about a hundredth; behind a line break where one is near. */
function longestEnd(draft: PageDraft, part: Part): number {
  const { text } = part.long;
  const fits = (end: number): boolean =>
    measureDraft(draft, partContent(draft, part, end), part.detail) <= draft.options.allocation;
  const end = characterStart(text, searchEnd(part, draft.options.allocation, fits));
  const lineEnd = text.lastIndexOf("\n", end - 1) + 1;
  const ends = end < text.length && lineEnd > (part.from + end) / 2 ? [lineEnd, end] : [end];
  return ends.find((each) => each > part.from && fits(each)) ?? part.from;
}

function searchEnd({ long, from }: Part, step: number, fits: (end: number) => boolean): number {
  const { length } = long.text;
  let low = Math.min(from, length);
  let high = Math.min(length, from + step);
  while (low < high && fits(high)) {
    low = high;
    high = Math.min(length, from + 2 * (high - from));
  }
  while (high - low > Math.max(1, (low - from) >> 7)) {
    const middle = (low + high) >>> 1;
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

function settlePart(draft: PageDraft, part: Part, end: number): Page {
  return settlePage(draft, partContent(draft, part, end), { detail: part.detail, covered: 1 });
}

/** The first part stands in its item, the later ones alone: what is around the text was told already. */
function partContent(draft: PageDraft, { long, from }: Part, end: number): PageContent {
  const { source, read } = draft;
  const text = long.text.slice(from, end);
  const item = source.isFieldsText ? {} : { item: source.offset, ...pointerOf(long) };
  const isEnd = end >= long.text.length;
  return {
    items: [from === 0 ? long.shell(text) : text],
    cut: { ...item, from, to: Math.max(from, end), length: long.text.length },
    itemTokens: read.tokens[0]!,
    ...(isEnd
      ? following(draft, 1)
      : { token: source.tokenAt({ at: long.at, offset: source.offset, from: end }), truncated: true }),
  };
}

function pointerOf({ pointer }: LongText): { at?: string } {
  return pointer === undefined ? {} : { at: pointer };
}

function nextCharacter(text: string, from: number): number {
  return Math.min(text.length, from + ((text.codePointAt(from) ?? 0) > 0xffff ? 2 : 1));
}
