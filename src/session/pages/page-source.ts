import type { Cut, PageData } from "../envelope.ts";
import type { ToolResult } from "../tool/budgeted-tool.ts";
import type { Position, TextPosition } from "./continuation.ts";

/** A result to take a page from: what a tool gave, or what is stored. */
export interface PageSource extends ToolResult {
  /** Where in the first item the page begins, when the pages before had its beginning. */
  readonly start?: Omit<TextPosition, "offset"> | undefined;
  /** The items are the text of the result's left out fields. */
  readonly isFieldsText?: boolean | undefined;
  /** The token behind the last item, where `total` and `more` do not tell. */
  readonly nextToken?: string | undefined;
  tokenAt(position: Position): string;
}

export interface PageOptions {
  /** What the page's text may measure. */
  readonly allocation: number;
  /** Tokens, or more where the client counts something else as well. */
  measure(text: string): number;
  /** Tokens. */
  count(text: string): number;
  /** What the page says about going on. */
  note(facts: NoteFacts): string | undefined;
  /** About the session, given what this page costs. They stand behind those of the result. */
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
  /** JSON of the envelope. */
  readonly text: string;
  readonly tokens: number;
  /** The items that the page has, a cut one whole. */
  readonly items: readonly unknown[];
  /** What these items cost, each by itself. */
  readonly itemTokens: number;
  /** The token behind them. */
  readonly nextToken: string | undefined;
}
