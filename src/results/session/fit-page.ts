import { characterStart } from "../../core/text/index.ts";
import {
  createDraft,
  type Detail,
  type Page,
  type PageContent,
  type PageDraft,
  type PageOptions,
  type PageSource,
  type ReadItems,
  readItems,
} from "./render-page.ts";

/** Reads as many items as may fit, and returns a function that makes pages from them. It returns the largest page of
 *  whole items whose text, with its envelope, is within the allocation. If not even one item fits, the page has a part of
 *  it. The allocation must not be larger than the one for which items were read. Rethrows an error that the source throws
 *  before its first item. */
export async function readPage(source: PageSource, options: PageOptions): Promise<(options: PageOptions) => Page> {
  const { allocation, measure, form } = options;
  const none: ReadItems = { items: [], tokens: [], ended: true };
  const empty = { items: [], token: undefined, truncated: false, itemTokens: 0 };
  // `total` and `warnings` are known only after reading. This frame has neither, and shows how much room is left.
  const unread = { ...source, total: 0, warnings: [] };
  const frame = createDraft({ source: unread, read: none, options }).render(empty, "bare", 0);
  const read = await readItems(source.items, { room: allocation - measure(frame.text), measure, form });
  if (read.items.length === 0 && read.failure !== undefined) throw read.failure;
  return (sizes) => {
    const draft = createDraft({ source, read, options: sizes });
    if (draft.read.items.length === 0) {
      // The offset is past the end, or there are no items.
      const content = takeContent(draft, 0);
      const fits = (detail: Detail): boolean => measureDraft(draft, content, detail) <= sizes.allocation;
      return settlePage(draft, content, { detail: details.find(fits) ?? "bare", covered: 0 });
    }
    if (draft.source.start !== undefined) return fitPart(draft);
    for (const detail of details) {
      const page = fitItems(draft, detail);
      if (page !== undefined) return page;
    }
    return fitPart(draft);
  };
}

function fitItems(draft: PageDraft, detail: Detail): Page | undefined {
  const { options } = draft;
  // Items counted one by one need a little more than together, but never half as much again. So the others need
  // no rendering.
  const { read } = draft;
  let tokens = 0;
  const tooMany = read.tokens.findIndex((each) => {
    tokens += each;
    return tokens > options.allocation * 1.5;
  });
  const most = read.ended ? read.items.length : read.items.length - 1;
  let count = tooMany === -1 ? most : Math.min(most, tooMany);
  while (count > 0) {
    const content = takeContent(draft, count);
    const size = measureDraft(draft, content, detail);
    if (size <= options.allocation) return settlePage(draft, content, { detail, covered: count });
    // Removes items in proportion to the excess, at least one. So the page soon fits, and is rarely much too small.
    count -= Math.max(1, Math.ceil(count * (1 - options.allocation / size)));
  }
  return undefined;
}

function takeContent(draft: PageDraft, count: number): PageContent {
  const { items, tokens } = draft.read;
  const itemTokens = tokens.slice(0, count).reduce((sum, each) => sum + each, 0);
  return { items: items.slice(0, count), itemTokens, ...following(draft, count) };
}

const details: readonly Detail[] = ["full", "plain", "bare"];

function measureDraft({ render, options }: PageDraft, content: PageContent, detail: Detail): number {
  return options.measure(render(content, detail, options.allocation).text);
}

/** Returns the token after the first `count` items. After the last item, it is the token of the fields that were left
 *  out. */
function following(draft: PageDraft, count: number): Pick<PageContent, "token" | "truncated"> {
  const { source, fieldsToken } = draft;
  const behind = followingItems(draft, count);
  const isPastEnd = count === 0 && source.offset > 0;
  if (behind.truncated || fieldsToken === undefined || isPastEnd) return behind;
  return { token: fieldsToken, truncated: true };
}

/** Returns no token if there was no progress, so that following tokens always ends. */
function followingItems(draft: PageDraft, count: number): Pick<PageContent, "token" | "truncated"> {
  const { source, read } = draft;
  const all = typeof source.total === "function" ? source.total() : source.total;
  const more = typeof source.more === "function" ? source.more() : source.more;
  const hasMore = more ?? (all !== undefined && source.offset + count < all);
  const truncated = count < read.items.length || read.failure !== undefined || hasMore;
  if (!truncated) return { token: source.nextToken, truncated: source.nextToken !== undefined };
  const token = count === 0 ? undefined : source.tokenAt({ at: "items", offset: source.offset + count });
  return { token, truncated };
}

/** The final page of a content that fits. It has, or completes, the first `covered` items. */
function settlePage(
  draft: PageDraft,
  content: PageContent,
  { detail, covered }: { detail: Detail; covered: number },
): Page {
  const { read, options, render } = draft;
  let rendered = render(content, detail, options.allocation);
  // The warning states what the page costs, so a new number can change the cost again.
  for (let round = 0; round < 3; round += 1) {
    const corrected = render(content, detail, options.count(rendered.text));
    if (corrected.text === rendered.text || options.measure(corrected.text) > options.allocation) break;
    rendered = corrected;
  }
  return {
    ...rendered,
    tokens: options.count(rendered.text),
    items: read.items.slice(0, covered),
    itemTokens: content.itemTokens,
    nextToken: followingItems(draft, covered).token,
  };
}

interface TextPart {
  readonly long: LongText;
  readonly from: number;
  readonly detail: Detail;
}

/** Makes a page with a part of its first item, which is larger than a page. The parts of all pages, joined, are the
 *  text. */
function fitPart(draft: PageDraft): Page {
  const { start } = draft.source;
  const from = start?.from ?? 0;
  const [first] = draft.read.items;
  // In the form that the store returns, because later parts are cut from the stored item.
  const item = start === undefined && typeof first !== "string" ? JSON.parse(JSON.stringify(first)) : first;
  let last: TextPart | undefined;
  // From most information to least room.
  for (const long of listTexts(item, draft)) {
    for (const detail of details) {
      last = { long, from, detail };
      const end = findLongestEnd(draft, last);
      if (end - from >= findLeastProgress(draft, last)) return settlePart(draft, last, end);
    }
  }
  // A page must advance by at least one character.
  const { text } = last!.long;
  const next = from + ((text.codePointAt(from) ?? 0) > 0xffff ? 2 : 1);
  return settlePart(draft, last!, Math.min(text.length, next));
}

/** Yields the texts that can be cut: the item's longest string, then the whole JSON. Yields only the JSON if the
 *  pointer to the string, or the item around it, is too large. */
function* listTexts(item: unknown, { source: { start }, options }: PageDraft): Generator<LongText> {
  const longest = start?.at === "json" ? undefined : findLongestText(item);
  if (longest !== undefined) {
    // Compares lengths only, because an item of 10 MB without its longest string can still have 10 MB.
    const isShort = (): boolean => JSON.stringify(longest.shell("")).length <= options.allocation * 8;
    if (start !== undefined || (longest.pointer!.length <= 100 && isShort())) yield longest;
  }
  if (start === undefined || longest === undefined)
    yield { at: "json", text: JSON.stringify(item), shell: (part) => part };
}

/** Returns how many characters a part must have to be worth a page. If fewer fit, the page shows fewer details beside
 *  the part, or the JSON is cut instead of the string. */
function findLeastProgress({ options, source }: PageDraft, { long, from, detail }: TextPart): number {
  const rest = long.text.length - from;
  const isLastResort = long.at === "json" || source.start !== undefined;
  if (!isLastResort) return Math.min(rest, Math.ceil(options.allocation / 2));
  return Math.min(rest, detail === "bare" ? 1 : 64);
}

/** Finds the furthest end at which the page fits, to about a hundredth. Prefers an end after a line break if one is
 *  near. */
function findLongestEnd(draft: PageDraft, part: TextPart): number {
  const { text } = part.long;
  const fits = (end: number): boolean =>
    measureDraft(draft, partContent(draft, part, end), part.detail) <= draft.options.allocation;
  const end = characterStart(text, searchEnd(part, draft.options.allocation, fits));
  const lineEnd = text.lastIndexOf("\n", end - 1) + 1;
  const ends = end < text.length && lineEnd > (part.from + end) / 2 ? [lineEnd, end] : [end];
  return ends.find((each) => each > part.from && fits(each)) ?? part.from;
}

function searchEnd({ long, from }: TextPart, step: number, fits: (end: number) => boolean): number {
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

function settlePart(draft: PageDraft, part: TextPart, end: number): Page {
  return settlePage(draft, partContent(draft, part, end), { detail: part.detail, covered: 1 });
}

/** The first part is shown inside its item. Later parts are shown alone, because the item was shown already. */
function partContent(draft: PageDraft, { long, from }: TextPart, end: number): PageContent {
  const { source, read } = draft;
  const text = long.text.slice(from, end);
  const at = long.pointer === undefined ? {} : { at: long.pointer };
  const item = source.isFieldsText ? {} : { item: source.offset, ...at };
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

/** The text that is cut if an item is larger than a page: its longest string, or its whole JSON if the string does not
 *  help. */
interface LongText {
  readonly at: "text" | "json";
  /** JSON pointer to the string. Absent for JSON. */
  readonly pointer?: string;
  readonly text: string;
  /** Returns the item with a part of the text in place of the text. For JSON, returns the part alone. */
  shell(part: string): unknown;
}

/** Finds the first one of the longest strings. Depends on the item only, so that all pages cut the same text. */
function findLongestText(item: unknown): LongText | undefined {
  let best: { readonly path: readonly string[]; readonly text: string } | undefined;
  const path: string[] = [];
  const visit = (value: unknown): void => {
    if (typeof value === "string" && value.length > (best?.text.length ?? -1)) best = { path: [...path], text: value };
    // Tools return nothing deeper. If an item is deeper, its JSON is cut.
    if (typeof value !== "object" || value === null || path.length === 8) return;
    for (const [key, child] of Object.entries(value)) {
      path.push(key);
      visit(child);
      path.pop();
    }
  };
  visit(item);
  if (best === undefined) return undefined;
  const found = best;
  return {
    at: "text",
    pointer: found.path.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join(""),
    text: found.text,
    shell: (part) => replaceAt(item, found.path, part),
  };
}

function replaceAt(value: unknown, [key, ...rest]: readonly string[], part: string): unknown {
  if (key === undefined) return part;
  const child = (value as Record<string, unknown>)[key];
  const replaced = replaceAt(child, rest, part);
  if (Array.isArray(value)) return value.with(Number(key), replaced);
  return { ...(value as object), [key]: replaced };
}
