/** Rewrites a delivered result smaller for the work log: one line, at best 200 to 300 characters. What is longer than an entry may be
 *  is cut, and a throw falls back to the generic one. Growing this kind: one file beside the tool, `compress` in the tool, one call of
 *  `testCompressor`. */
export type Compressor = (input: CompressInput) => string;

export interface CompressInput {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** The `data` of the delivered envelope: fields, items, `total`, `returned`, `offset`, `truncated`. */
  readonly data: Readonly<Record<string, unknown>>;
}
