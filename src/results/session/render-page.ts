import { shorten } from "../../core/text/index.ts";
import type { ToolResult } from "./budgeted-tool.ts";
import type { Position, TextPosition } from "./continuations.ts";
import { type Cut, chooseItemsName, frameNames, type PageData, plainItem, stoppedWarning } from "./envelope.ts";
import type { TextForm } from "./page-text.ts";

/** How much a page says besides its items. It says less only if there is no room. */
export type Detail = "full" | "plain" | "bare";

export interface PageContent {
  readonly items: readonly unknown[];
  readonly cut?: Cut | undefined;
  /** The token of what follows. Absent at the end. */
  readonly token: string | undefined;
  readonly truncated: boolean;
  readonly itemTokens: number;
}

/** What makes one page: the source, what was read of it, and how it is rendered. */
export interface PageDraft {
  readonly source: PageSource;
  readonly read: ReadItems;
  readonly options: PageOptions;
  /** Renders a draft of the page. `tokens` is its assumed cost, for warnings about what is left. */
  render(content: PageContent, detail: Detail, tokens: number): Pick<Page, "data" | "text">;
  /** The token for fields that did not fit on the page. */
  readonly fieldsToken: string | undefined;
}

export function createDraft({ source, read, options }: Pick<PageDraft, "source" | "read" | "options">): PageDraft {
  const fields = chooseFields(source, options);
  const fieldsToken = fields.omitted.length === 0 ? undefined : source.tokenAt({ at: "fields", from: 0 });
  const total = typeof source.total === "function" ? source.total() : source.total;
  const own = listWarnings(source, read);
  const others = fields.omitted.length - 5;
  const few = fields.omitted.slice(0, 5).map((name) => shorten(name, 40));
  const names = others > 0 ? [...few, `+${others} more`] : few;
  const render: PageDraft["render"] = (content, detail, tokens) => {
    const { items, cut, token, truncated, itemTokens } = content;
    const facts = { token, items, itemTokens, cut };
    const note = detail === "bare" ? undefined : options.note(facts);
    const warnings = detail === "full" ? [...own, ...options.warnings(tokens)] : [];
    const data: PageData = {
      ...fields.shown,
      [chooseItemsName(source)]: items,
      ...omitUndefined({ total }),
      returned: items.length,
      offset: source.offset,
      truncated,
      ...omitUndefined({
        cut,
        left_out:
          fieldsToken === undefined
            ? undefined
            : { fields: detail === "full" ? names : [`${fields.omitted.length} fields`], token: fieldsToken },
        continuation_token: token,
        budget_note: note,
        warnings: warnings.length === 0 ? undefined : warnings,
      }),
    };
    const { form } = options;
    const text = form?.pageText(data, { detail, tokens }) ?? JSON.stringify({ status: "success", data });
    return { data, text };
  };
  return { source, read, options, render, fieldsToken };
}

/** Removes keys without a value, so that pages can be compared and counted. */
function omitUndefined<Values extends object>(values: Values): Values {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Values;
}

/** Chooses fields in their order until a quarter of the page is full, because a page is mainly for items. */
function chooseFields(source: PageSource, { allocation, measure, form }: PageOptions) {
  if (form?.hasOwnFields) return { shown: source.fields, omitted: [] };
  const shown: [string, unknown][] = [];
  const omitted: string[] = [];
  let room = allocation / 4;
  for (const [name, value] of Object.entries(source.fields)) {
    const json = JSON.stringify({ [name]: value });
    if (json === "{}") continue;
    const isHidden = frameNames.has(name) || name === chooseItemsName(source) || isTooLong(json, room);
    const size = isHidden ? Number.POSITIVE_INFINITY : measure(json);
    if (size <= room) {
      shown.push([name, value]);
      room -= size;
    } else omitted.push(name);
  }
  return { shown: Object.fromEntries(shown), omitted };
}

const maxWarnings = 5;

function listWarnings(source: PageSource, { items, failure }: ReadItems): string[] {
  const given = (typeof source.warnings === "function" ? source.warnings() : source.warnings) ?? [];
  const rest = given.length > maxWarnings ? [`+${given.length - maxWarnings} more warnings`] : [];
  const stopped = failure === undefined ? [] : [stoppedWarning(items.length, failure)];
  return [...given.slice(0, maxWarnings), ...rest, ...stopped].map((text) => shorten(text, 200));
}

/** What was read. Reading stops when the page is full, so a tool that walks 100,000 files stops after the first
 *  page. */
export interface ReadItems {
  readonly items: readonly unknown[];
  /** The tokens of each item's JSON, counted alone. As text: its share of what the items take together. */
  readonly tokens: readonly number[];
  /** Whether nothing follows. If false, the last item is the one that did not fit. */
  readonly ended: boolean;
  /** Why reading stopped early. */
  readonly failure?: unknown;
}

/** `room` is the tokens for all items together. */
type ReadOptions = Pick<PageOptions, "measure" | "form"> & { readonly room: number };

export async function readItems(source: ToolResult["items"], options: ReadOptions): Promise<ReadItems> {
  const { room } = options;
  const items: unknown[] = [];
  const tally = createTally(options);
  try {
    for await (const value of source) {
      const { item, json } = isTooLong(value, room) ? { item: value, json: value } : plainItem(value);
      items.push(item);
      tally.add(item, json);
      if (tally.isFull()) return { items, tokens: tally.tokens(), ended: false };
    }
  } catch (failure) {
    return { items, tokens: tally.tokens(), ended: true, failure };
  }
  return { items, tokens: tally.tokens(), ended: true };
}

/** Enough to get within a few percent of the room. Each recount counts all that was read. */
const maxRecounts = 6;

function isTooLong(value: unknown, room: number): value is string {
  // A longer text does not fit with any counter, so a text of 10 MB is neither encoded nor counted.
  return typeof value === "string" && value.length > room * 100;
}

/** Many short texts counted one by one need more tokens than together. So the sum is recounted before it ends a
 *  page. */
function createTally({ room, measure, form }: ReadOptions) {
  const items: unknown[] = [];
  const texts: string[] = [];
  const alone: number[] = [];
  let [sum, recounts, aloneSum] = [0, 0, 0];
  // As text, an item alone repeats what a page says once, such as the name of its file.
  let share = 1;
  const recount = (): number => {
    if (form === undefined) return measure(texts.join(","));
    const exact = measure(form.itemsText(items));
    share = exact / aloneSum;
    return exact;
  };
  const measureAlone = (item: unknown, json: string): number =>
    measure(form === undefined ? `${json},` : form.itemsText([item]));
  return {
    add(item: unknown, json: string): void {
      items.push(item);
      texts.push(json);
      const isLong = isTooLong(json, room);
      if (isLong) recounts = maxRecounts;
      const tokens = isLong ? json.length : measureAlone(item, json);
      alone.push(tokens);
      aloneSum += tokens;
      sum += tokens * share;
    },
    isFull(): boolean {
      if (sum <= room) return false;
      // If the first item is too large, read one more to learn whether anything follows it.
      if (texts.length === 1) return false;
      if (recounts === maxRecounts) return true;
      recounts += 1;
      sum = recount();
      return sum > room;
    },
    tokens: (): readonly number[] => (share === 1 ? alone : alone.map((tokens) => tokens * share)),
  };
}

/** A result to page: from a tool, or from the store. */
export interface PageSource extends ToolResult {
  /** Where in the first item the page begins, if earlier pages had its beginning. */
  readonly start?: Omit<TextPosition, "offset"> | undefined;
  /** Whether the items are the text of the fields that were left out. */
  readonly isFieldsText?: boolean | undefined;
  /** The token after the last item, if `total` and `more` do not show that something follows. */
  readonly nextToken?: string | undefined;
  tokenAt(position: Position): string;
}

export interface PageOptions {
  /** The size that the page's text may have. */
  readonly allocation: number;
  /** Returns the tokens of a text, or a higher number if the client limits something else too. */
  measure(text: string): number;
  /** Returns the tokens of a text. */
  count(text: string): number;
  /** How the page is rendered as text. Absent for JSON. */
  readonly form?: TextForm | undefined;
  /** Returns what the page says about continuing. */
  note(facts: NoteFacts): string | undefined;
  /** Returns warnings about the session, given the cost of this page. They follow those of the result. */
  warnings(tokens: number): readonly string[];
}

export interface NoteFacts {
  readonly token: string | undefined;
  readonly items: readonly unknown[];
  readonly itemTokens: number;
  readonly cut: Cut | undefined;
}

export interface Page {
  readonly data: PageData;
  /** What the model reads. */
  readonly text: string;
  readonly tokens: number;
  /** The items on the page. A cut item is complete here. */
  readonly items: readonly unknown[];
  /** The tokens of these items, counted one by one. */
  readonly itemTokens: number;
  /** The token after these items. */
  readonly nextToken: string | undefined;
}
