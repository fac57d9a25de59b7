import { countNoun, messageOf } from "../../core/text/index.ts";

/** What a model gets: a page of a result, or an error. */
export type Envelope = { readonly status: "success"; readonly data: PageData } | ErrorEnvelope;

export interface ErrorEnvelope {
  readonly status: "error";
  readonly error: { readonly code: string; readonly message: string; readonly hint?: string };
}

/** A page: the result's own fields, then the items under their name, then facts about the page. */
export interface PageData extends PageFrame {
  readonly [field: string]: unknown;
}

/** Facts about a page. */
export interface PageFrame {
  /** Items of the whole result, if known. */
  readonly total?: number;
  /** Items on this page. */
  readonly returned: number;
  /** The place of the first item in the whole result, counted from 0. */
  readonly offset: number;
  /** Whether the result has more than this page. */
  readonly truncated: boolean;
  /** Which characters of a text are on this page, if the text is too large for one page. */
  readonly cut?: Cut;
  /** Fields that are too large for a page, and the token that returns them. */
  readonly left_out?: { readonly fields: readonly string[]; readonly token: string };
  /** Pass it to `nextPage` to continue. */
  readonly continuation_token?: string;
  /** How to continue, and how much room is left. */
  readonly budget_note?: string;
  readonly warnings?: readonly string[];
}

/** Reserved names. A field of the result with one of them would hide a fact about the page. */
export const frameNames: ReadonlySet<string> = new Set(
  Object.keys({
    total: true,
    returned: true,
    offset: true,
    truncated: true,
    cut: true,
    left_out: true,
    continuation_token: true,
    budget_note: true,
    warnings: true,
  } satisfies Record<keyof PageFrame, true>),
);

/** Falls back to "items" if the name would hide a fact about the page, or if it is empty or too long. */
export function chooseItemsName({ itemsName }: { readonly itemsName: string }): string {
  return frameNames.has(itemsName) || itemsName.length > 60 || itemsName === "" ? "items" : itemsName;
}

/** A part of a text that is larger than a page. The parts of a text, joined in order, give the whole text. */
export interface Cut {
  /** The item, by its offset. Absent if the text is the JSON of the left out fields. */
  readonly item?: number;
  /** The place of the text in the item, as a JSON pointer (`/text`, or "" for an item that is a string). Absent if the
   *  text is the whole JSON of the item or of the fields. */
  readonly at?: string;
  readonly from: number;
  readonly to: number;
  readonly length: number;
}

/** A delivered page, or a delivered error. */
export interface Delivered {
  /** The page or the error as data. */
  readonly envelope: Envelope;
  /** What the model reads: the JSON of the envelope, or the page as text if the session has `format: "text"`. */
  readonly text: string;
  /** The tokens of `text`. */
  readonly tokens: number;
  /** The id for `recall`, such as `k3vbq5zoha`. */
  readonly id: string;
}

/** Returns the item and its JSON. A value that JSON cannot express becomes null or a note, so that a page never
 *  throws. */
export function plainItem(value: unknown): { item: unknown; json: string } {
  try {
    const json = JSON.stringify(value);
    return json === undefined ? { item: null, json: "null" } : { item: value, json };
  } catch (error) {
    const item = `[unreadable item: ${messageOf(error)}]`;
    return { item, json: JSON.stringify(item) };
  }
}

/** The warning in place of items that could not be read. */
export function stoppedWarning(count: number, failure: unknown): string {
  return `Stopped after ${countNoun(count, "item")}: ${messageOf(failure)}`;
}
