/** Pages as compact text. A complete result is only its content. A page of a longer result ends in one line that says
 *  what it holds and how to continue. */
import { formatNumber } from "../../core/text/index.ts";
import { parseToken } from "./continuations.ts";
import type { PageData } from "./envelope.ts";

/** How a session shows results: JSON in an envelope, or text. */
export type PageFormat = "json" | "text";

/** The text form of the pages of one result. */
export interface TextForm {
  /** Whether the tool renders its fields itself. Otherwise they are chosen as in JSON. */
  readonly hasOwnFields: boolean;
  /** Returns the text of items, to learn what they cost. */
  itemsText(items: readonly unknown[]): string;
  /** Returns the whole page. `detail` says how much it may say besides the items. */
  pageText(data: PageData, facts: { readonly detail: "full" | "plain" | "bare"; readonly tokens: number }): string;
}

interface TextFormOptions {
  /** The id of the delivery. */
  readonly id: string;
  readonly itemsName: string;
  readonly fields: Readonly<Record<string, unknown>>;
  /** Whether the page answers a call of the tool itself, which then takes an offset. */
  readonly takesOffset: boolean;
  readonly nextPageName: string;
  readonly renderText?: ((page: PageData) => string) | undefined;
}

export function createTextForm(options: TextFormOptions): TextForm {
  const { itemsName, fields, renderText } = options;
  const render = renderText ?? ((data: PageData) => renderPlainly(data, itemsName));
  const renderBody = (data: PageData): string => {
    const { cut } = data;
    const items = (data[itemsName] ?? []) as readonly unknown[];
    // A later part of an item, or a part of its JSON, is shown as it is.
    return cut !== undefined && (cut.from > 0 || cut.at === undefined) ? String(items[0]) : render(data);
  };
  return {
    hasOwnFields: renderText !== undefined,
    itemsText: (items) =>
      render({ ...fields, [itemsName]: items, returned: items.length, offset: 0, truncated: false }),
    pageText(data, { detail, tokens }) {
      const warnings = (data.warnings ?? []).map((text) => (text.startsWith("[") ? text : `[${text}]`));
      const parts = [renderBody(data), ...warnings, renderFooter(data, { ...options, detail, tokens })];
      const present = parts.filter((part) => part !== "" && part !== undefined);
      return present.length === 0 ? `[no ${itemsName}]` : present.join("\n");
    },
  };
}

/** Returns the text of an error. */
export function renderFailure({ code, message, hint }: { code: string; message: string; hint?: string }): string {
  const sentence = /[.!?…]$/.test(message) ? message : `${message}.`;
  return `Error (${code}): ${sentence}${hint === undefined ? "" : ` ${hint}`}`;
}

/** For tools without a form of their own: the fields as JSON, then the items. */
function renderPlainly(data: PageData, itemsName: string): string {
  const { total, returned, offset, truncated, cut, left_out, continuation_token, budget_note, warnings, ...rest } =
    data;
  const { [itemsName]: items, ...fields } = rest;
  const lines = renderItems((items ?? []) as readonly unknown[]);
  return [...(Object.keys(fields).length === 0 ? [] : [JSON.stringify(fields)]), ...lines].join("\n");
}

/** Returns each item on a line: a text as it is, an object as JSON. Like objects are rows below the names of their
 *  columns, as in CSV: an empty cell has no value, and only texts are in quotes. */
function renderItems(items: readonly unknown[]): string[] {
  const columns = findColumns(items);
  if (columns === undefined) return items.map((item) => (typeof item === "string" ? item : JSON.stringify(item)));
  const rows = (items as Readonly<Record<string, unknown>>[]).map((item) =>
    columns.map((name) => renderCell(item[name])),
  );
  return [columns.map(renderCell), ...rows].map((cells) => cells.join(","));
}

function findColumns(items: readonly unknown[]): string[] | undefined {
  // An object whose values are neither lists nor objects.
  const isFlat = (item: unknown): item is object =>
    typeof item === "object" &&
    item !== null &&
    !Array.isArray(item) &&
    Object.values(item).every((value) => value === null || typeof value !== "object");
  if (items.length === 0 || !items.every(isFlat)) return undefined;
  const names = new Set(items.flatMap((item) => Object.keys(item)));
  const filled = items.reduce<number>((sum, item) => sum + Object.keys(item).length, 0);
  // At most this share of the cells may be empty. Otherwise the objects are not alike.
  return names.size === 0 || filled < names.size * items.length * (1 - 1 / 3) ? undefined : [...names];
}

/** Quotes a text that would be read as something else. */
function renderCell(value: unknown): string {
  if (value === undefined) return "";
  if (typeof value !== "string") return String(value);
  const isPlain =
    /^[^",\s]([^",\r\n]*[^",\s])?$/.test(value) && !/^(-?[\d.]+(e[+-]?\d+)?|true|false|null)$/i.test(value);
  return isPlain ? value : `"${value.replaceAll('"', '""')}"`;
}

/** `[60 of 1,299 lines, 8.1k tokens; next: offset=60 · id k3vbq5zoha]` */
function renderFooter(
  data: PageData,
  options: TextFormOptions & { readonly detail: "full" | "plain" | "bare"; readonly tokens: number },
): string | undefined {
  const { truncated, offset, cut, left_out, continuation_token: token } = data;
  if (!truncated && offset === 0 && cut === undefined && left_out === undefined) return undefined;
  const position = token === undefined ? undefined : parseToken(token)?.position;
  const isOffset = options.takesOffset && position?.at === "items";
  const place = isOffset ? `offset=${position.offset}` : `${options.nextPageName} token=${token}`;
  const next = token === undefined ? undefined : `next: ${place}`;
  if (options.detail === "bare") return next === undefined ? undefined : `[${next}]`;
  const { tokens } = options;
  const size = tokens < 1_000 ? String(tokens) : `${(tokens / 1_000).toFixed(1)}k`;
  const facts = [`${describeRange(data, options.itemsName)}, ${size} tokens`];
  if (left_out !== undefined) facts.push(`left out: ${left_out.fields.join(", ")} (token ${left_out.token})`);
  if (next !== undefined) facts.push(next);
  return `[${facts.join("; ")} · id ${options.id}]`;
}

function describeRange({ total, returned, offset, cut }: PageData, itemsName: string): string {
  if (cut !== undefined) {
    const { item, from, to, length } = cut;
    const what = item === undefined ? "fields" : `item ${formatNumber(item)}`;
    return `${what}: characters ${formatNumber(from)}-${formatNumber(to)} of ${formatNumber(length)}`;
  }
  const all = total === undefined ? "" : ` of ${formatNumber(total)}`;
  if (returned === 0) return `no ${itemsName} from offset ${formatNumber(offset)} on${all}`;
  if (offset === 0) return `${formatNumber(returned)}${all} ${itemsName}`;
  return `${itemsName} ${formatNumber(offset + 1)}-${formatNumber(offset + returned)}${all}`;
}
