/** The one shape in which results and errors reach a model. */
export type Envelope = SuccessEnvelope | ErrorEnvelope;

export interface SuccessEnvelope {
  readonly status: "success";
  readonly data: PageData;
}

export interface ErrorEnvelope {
  readonly status: "error";
  readonly error: { readonly code: string; readonly message: string; readonly hint?: string };
}

/** The result's own fields, then the items under their name, then the frame. */
export interface PageData extends PageFrame {
  readonly [field: string]: unknown;
}

/** What a page tells of itself. */
export interface PageFrame {
  readonly total?: number;
  readonly returned: number;
  readonly offset: number;
  readonly truncated: boolean;
  /** Says that the last item, or the left out fields, are cut: which characters of how many stand here. */
  readonly cut?: Cut;
  /** Fields too large for a page, and the token that gets them. */
  readonly left_out?: { readonly fields: readonly string[]; readonly token: string };
  readonly continuation_token?: string;
  readonly budget_note?: string;
  readonly warnings?: readonly string[];
}

const frame: Readonly<Record<keyof PageFrame, true>> = {
  total: true,
  returned: true,
  offset: true,
  truncated: true,
  cut: true,
  left_out: true,
  continuation_token: true,
  budget_note: true,
  warnings: true,
};

/** Names that are taken: a field of the result or its items under one of them would hide the frame. */
export const frameNames: ReadonlySet<string> = new Set(Object.keys(frame));

/** A part of a text that is larger than a page. The parts of one text, joined in order, are the text. */
export interface Cut {
  /** Which item, by its offset. Absent where the text is that of the left out fields. */
  readonly item?: number;
  /** Where in the item the text stands, as a JSON pointer (`/text`, "" for an item that is a string).
   *  Absent where the text is the item's (or the fields') whole JSON. */
  readonly at?: string;
  readonly from: number;
  readonly to: number;
  readonly length: number;
}

export interface Delivered {
  readonly envelope: Envelope;
  /** JSON of the envelope: what was counted. */
  readonly text: string;
  readonly tokens: number;
  /** `r1`, `r2` …: what recall takes. */
  readonly id: string;
}
