import { fitPart } from "./fit-part.ts";
import { details, following, measureDraft, type PageDraft, settlePage } from "./page-draft.ts";
import type { Page, PageOptions, PageSource } from "./page-source.ts";
import { type ReadItems, readItems } from "./read-items.ts";
import { chooseFields, createRenderer, type Detail, fieldsStart, type PageContent } from "./render-page.ts";

/** Makes pages of what was read once. */
export interface PageFitter {
  /** The largest page of whole items whose text, envelope included, is within its allocation. Where not even one item fits, a part of it.
   *  The allocation may not be larger than the one that was read for. */
  fit(options: PageOptions): Page;
}

/** Reads as many items as the allocation may hold. What the source throws before its first item is thrown on. */
export async function readPage(source: PageSource, options: PageOptions): Promise<PageFitter> {
  const read = await readFor(source, options);
  if (read.items.length === 0 && read.failure !== undefined) throw read.failure;
  return { fit: (sizes) => fitPage(createDraft(source, read, sizes)) };
}

function fitPage(draft: PageDraft): Page {
  if (draft.read.items.length === 0) return fitEmpty(draft);
  if (draft.source.start !== undefined) return fitPart(draft);
  for (const detail of details) {
    const page = fitItems(draft, detail);
    if (page !== undefined) return page;
  }
  return fitPart(draft);
}

async function readFor(source: PageSource, options: PageOptions): Promise<ReadItems> {
  const { allocation, measure } = options;
  const none: ReadItems = { items: [], tokens: [], ended: true };
  const empty = { items: [], token: undefined, truncated: false, itemTokens: 0 };
  // Facts that are known only after reading are asked then: this one is to tell how much room there is.
  const fields = chooseFields(source, options);
  const unread = { ...source, total: 0, warnings: [] };
  const frame = createRenderer({ source: unread, read: none, options, fields })(empty, "bare", 0);
  return readItems(source.items, { room: allocation - measure(frame.text), measure });
}

function createDraft(source: PageSource, read: ReadItems, options: PageOptions): PageDraft {
  const fields = chooseFields(source, options);
  const render = createRenderer({ source, read, options, fields });
  const fieldsToken = fields.omitted.length === 0 ? undefined : source.tokenAt(fieldsStart);
  return { source, read, options, render, fieldsToken };
}

/** Past the end, or nothing found: an answer as well. */
function fitEmpty(draft: PageDraft): Page {
  const content = contentOf(draft, 0);
  const fits = (detail: Detail): boolean => measureDraft(draft, content, detail) <= draft.options.allocation;
  return settlePage(draft, content, { detail: details.find(fits) ?? "bare", covered: 0 });
}

function fitItems(draft: PageDraft, detail: Detail): Page | undefined {
  const { options } = draft;
  let count = likelyCount(draft);
  while (count > 0) {
    const content = contentOf(draft, count);
    const size = measureDraft(draft, content, detail);
    if (size <= options.allocation) return settlePage(draft, content, { detail, covered: count });
    // By the share that is too much, at least by one: a page is soon small enough, and rarely much too small.
    count -= Math.max(1, Math.ceil(count * (1 - options.allocation / size)));
  }
  return undefined;
}

/** Counted one by one items come to a little more than together, never to half as much again: the rest need not be rendered. */
function likelyCount({ read, options }: PageDraft): number {
  let tokens = 0;
  const tooMany = read.tokens.findIndex((each) => {
    tokens += each;
    return tokens > options.allocation * 1.5;
  });
  const most = read.ended ? read.items.length : read.items.length - 1;
  return tooMany === -1 ? most : Math.min(most, tooMany);
}

function contentOf(draft: PageDraft, count: number): PageContent {
  const { items, tokens } = draft.read;
  const itemTokens = tokens.slice(0, count).reduce((sum, each) => sum + each, 0);
  return { items: items.slice(0, count), itemTokens, ...following(draft, count) };
}
