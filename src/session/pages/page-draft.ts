import type { Page, PageOptions, PageSource } from "./page-source.ts";
import type { ReadItems } from "./read-items.ts";
import type { Detail, PageContent, RenderPage } from "./render-page.ts";

/** What makes one page: the source, what was read of it, and how it is rendered. */
export interface PageDraft {
  readonly source: PageSource;
  readonly read: ReadItems;
  readonly options: PageOptions;
  readonly render: RenderPage;
  /** The token for fields that the page has no room for. */
  readonly fieldsToken: string | undefined;
}

export const details: readonly Detail[] = ["full", "plain", "bare"];

export function measureDraft({ render, options }: PageDraft, content: PageContent, detail: Detail): number {
  return options.measure(render(content, detail, options.allocation).text);
}

/** What stands behind the first `count` items, and behind the last one the fields that were left out. */
export function following(draft: PageDraft, count: number): Pick<PageContent, "token" | "truncated"> {
  const { source, fieldsToken } = draft;
  const behind = followingItems(draft, count);
  const isPastEnd = count === 0 && source.offset > 0;
  if (behind.truncated || fieldsToken === undefined || isPastEnd) return behind;
  return { token: fieldsToken, truncated: true };
}

/** Without progress there is no token: whoever follows tokens must come to an end. */
function followingItems(draft: PageDraft, count: number): Pick<PageContent, "token" | "truncated"> {
  const { source, read } = draft;
  const truncated = count < read.items.length || read.failure !== undefined || hasMore(source, count);
  if (!truncated) return { token: source.nextToken, truncated: source.nextToken !== undefined };
  const token = count === 0 ? undefined : source.tokenAt({ at: "items", offset: source.offset + count });
  return { token, truncated };
}

function hasMore({ more, total, offset }: PageSource, count: number): boolean {
  if (more !== undefined) return typeof more === "function" ? more() : more;
  const all = typeof total === "function" ? total() : total;
  return all !== undefined && offset + count < all;
}

/** Each time the warning is told what the page really costs, it may change what the page costs. */
const mostCorrections = 3;

/** The page as it goes out, of a content that fits and has or ends the first `covered` items. */
export function settlePage(
  draft: PageDraft,
  content: PageContent,
  { detail, covered }: { detail: Detail; covered: number },
): Page {
  const { read, options, render } = draft;
  let rendered = render(content, detail, options.allocation);
  for (let round = 0; round < mostCorrections; round += 1) {
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
