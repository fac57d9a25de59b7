/** Rewrites a delivered result smaller for the work log. Growing this kind: one file beside the tool, `compressor` in the tool,
 *  one call of `testCompressor`. */
export interface Compressor {
  /** The tool whose results it knows. */
  readonly tool: string;
  /** One line, at best 200 to 300 characters. What is longer than an entry may be is cut, and a throw falls back to the generic one. */
  compress(input: CompressInput): string;
}

export interface CompressInput {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** The `data` of the delivered envelope: fields, items, `total`, `returned`, `offset`, `truncated`. */
  readonly data: Readonly<Record<string, unknown>>;
}
