/** What a tool is to a session: it gives a result lazily, and the session decides how much of it is delivered now. */
import type { Compressor } from "../compress/compressor.ts";

export interface BudgetedTool {
  readonly name: string;
  readonly description: string;
  /** Takes `budget` (tokens) and `offset` (items) beside the tool's own parameters. */
  readonly inputSchema: JsonSchema;
  /** What one unit costs before this session has measured anything. */
  readonly itemTokens: number;
  /** What a hint counts in: "files with metadata". With "KB" the text of the items is measured, else the items. */
  readonly itemUnit: string;
  /** The parameter that limits how many items come back, such as `max_files`: hints in schemas set its default. */
  readonly limitParameter?: string | undefined;
  /** What the work log says of a result. */
  readonly compress: Compressor;
  run(args: ToolArguments, call: ToolCall): Promise<ToolResult | ToolFailure>;
}

export type ToolArguments = Readonly<Record<string, unknown>>;

export interface ToolCall {
  readonly signal: AbortSignal;
  readonly timeoutMs?: number | undefined;
}

/** Facts about the result, and its items from `offset` on. */
export interface ToolResult {
  /** Stand before the items: `{ root, project_type }`. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** `files`, `matches`, `lines`, `commits`, `hunks`. */
  readonly itemsName: string;
  /** Read only as far as the page goes; leaving early calls the iterator's `return`. */
  readonly items: AsyncIterable<unknown> | Iterable<unknown>;
  readonly offset: number;
  /** Of all items from 0 on, when known; asked after the items were read. */
  readonly total?: number | (() => number | undefined) | undefined;
  /** Whether items follow although the iteration ended, as with a maximum that the caller set; asked after the items were read.
   *  Needed only where `total` does not tell. */
  readonly more?: boolean | (() => boolean) | undefined;
  /** Differs when the underlying result did: a continuation says so. */
  readonly version?: string | undefined;
  /** Asked after the items were read when it is a function: what a reader noticed on the way. */
  readonly warnings?: readonly string[] | (() => readonly string[]) | undefined;
}

export interface ToolFailure {
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
}

export interface JsonSchema {
  readonly type: "object";
  readonly properties: Readonly<Record<string, JsonProperty>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
}

export interface JsonProperty {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly [keyword: string]: unknown;
}

export function isFailure(outcome: object): outcome is ToolFailure {
  return "code" in outcome && "message" in outcome;
}
