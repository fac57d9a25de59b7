import { countNoun, messageOf, shorten } from "../../text/index.ts";
import { type Cut, frameNames, type PageData } from "../envelope.ts";
import type { Position } from "./continuation.ts";
import type { PageOptions, PageSource } from "./page-source.ts";
import { isTooLong, type ReadItems } from "./read-items.ts";

/** How much is said beside the items. Less only where the page has no room for more. */
export type Detail = "full" | "plain" | "bare";

export interface PageContent {
  readonly items: readonly unknown[];
  readonly cut?: Cut | undefined;
  /** What follows; absent at the end. */
  readonly token: string | undefined;
  readonly truncated: boolean;
  readonly itemTokens: number;
}

export interface Rendered {
  readonly data: PageData;
  readonly text: string;
}

/** Renders drafts of one page. `tokens` is what the page is taken to cost, for warnings that tell what is left. */
export type RenderPage = (content: PageContent, detail: Detail, tokens: number) => Rendered;

export interface RenderParts {
  readonly source: PageSource;
  readonly read: ReadItems;
  readonly options: PageOptions;
  readonly fields: ChosenFields;
}

export function createRenderer({ source, read, options, fields }: RenderParts): RenderPage {
  const total = typeof source.total === "function" ? source.total() : source.total;
  const own = ownWarnings(source, read);
  return (content, detail, tokens) => {
    const { items, cut, token, truncated, itemTokens } = content;
    const facts = { token, items, itemTokens, cut };
    const note = detail === "bare" ? undefined : options.note(facts);
    const warnings = detail === "full" ? [...own, ...options.warnings(tokens)] : [];
    const data: PageData = {
      ...fields.shown,
      [itemsNameOf(source)]: items,
      ...defined({ total }),
      returned: items.length,
      offset: source.offset,
      truncated,
      ...defined({
        cut,
        left_out: leftOut(source, fields.omitted, detail),
        continuation_token: token,
        budget_note: note,
        warnings: warnings.length === 0 ? undefined : warnings,
      }),
    };
    return { data, text: JSON.stringify({ status: "success", data }) };
  };
}

/** Keys without a value have no place in data that others compare or count. */
function defined<Values extends object>(values: Values): Values {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Values;
}

/** A name that the frame has already would hide it, and one without end leaves no room. */
function itemsNameOf({ itemsName }: PageSource): string {
  return frameNames.has(itemsName) || itemsName.length > 60 || itemsName === "" ? "items" : itemsName;
}

export interface ChosenFields {
  readonly shown: Readonly<Record<string, unknown>>;
  readonly omitted: readonly string[];
}

/** Fields in their order, as long as a quarter of the page holds them; the items are what a page is for. */
export function chooseFields(source: PageSource, { allocation, measure }: PageOptions): ChosenFields {
  const shown: [string, unknown][] = [];
  const omitted: string[] = [];
  let room = allocation / 4;
  for (const [name, value] of Object.entries(source.fields)) {
    const json = JSON.stringify({ [name]: value });
    if (json === "{}") continue;
    const isHidden = frameNames.has(name) || name === itemsNameOf(source) || isTooLong(json, room);
    const size = isHidden ? Number.POSITIVE_INFINITY : measure(json);
    if (size <= room) {
      shown.push([name, value]);
      room -= size;
    } else omitted.push(name);
  }
  return { shown: Object.fromEntries(shown), omitted };
}

function leftOut(source: PageSource, names: readonly string[], detail: Detail): PageData["left_out"] {
  if (names.length === 0) return undefined;
  const few = names.slice(0, 5).map((name) => shorten(name, 40));
  const rest = names.length > 5 ? [`+${names.length - 5} more`] : [];
  const fields = detail === "full" ? [...few, ...rest] : [`${names.length} fields`];
  return { fields, token: source.tokenAt(fieldsStart) };
}

export const fieldsStart: Position = { at: "fields", from: 0 };

const mostWarnings = 5;

function ownWarnings(source: PageSource, { items, failure }: ReadItems): string[] {
  const given = (typeof source.warnings === "function" ? source.warnings() : source.warnings) ?? [];
  const rest = given.length > mostWarnings ? [`+${given.length - mostWarnings} more warnings`] : [];
  const stopped = failure === undefined ? [] : [stoppedWarning(items.length, failure)];
  return [...given.slice(0, mostWarnings), ...rest, ...stopped].map((text) => shorten(text, 200));
}

/** What stands in the place of the items that did not come. */
export function stoppedWarning(count: number, failure: unknown): string {
  return `Stopped after ${countNoun(count, "item")}: ${messageOf(failure)}`;
}
