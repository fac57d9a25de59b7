export interface FittedSection {
  /** "" where nothing of it fits. */
  readonly text: string;
  /** Entries of the tree, lines of what is written. 0 where it is whole. */
  readonly omitted: number;
}

/** What a section must stay within: the tokens of all that it stands in. */
export interface SectionLimit {
  readonly limit: number;
  /** May be infinite where they are above the limit. */
  tokensWith(section: string): number;
}
