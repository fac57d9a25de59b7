/** The numbers that the estimator tallies, by position. Fitted coefficients are stored in this order. */
import { scripts } from "./character-kinds.ts";
import { PIECE_CLASSES } from "./vocabulary.ts";

/** Longest word and longest runs with a number of their own; what is longer adds to an `…_EXCESS` number. */
const caps = {
  WORD_CAP: 12,
  SPACE_CAP: 12,
  TAB_CAP: 4,
  NEWLINE_CAP: 4,
  /** From here on tokenizers hold no longer runs of spaces: each further one costs its share of the longest. */
  LONG_SPACE_RUN: 64,
} as const;

/** How a piece of an ASCII word stands in it. */
const places = { AFTER_SPACE: 0, BARE: 1, AFTER_SYMBOL: 2, CONTINUED: 3 } as const;

/** How an ASCII word is written: the number of capitals that begin it, up to 2. */
const shapes = { UPPER_WORD: 2 } as const;

export type FeatureName =
  /** Pieces of ASCII words, by place and class. */
  | "WORD_PIECE"
  /** ASCII words, by shape and length. */
  | "WORD_LENGTH"
  | "WORD_EXCESS"
  /** ASCII words that are no piece by themselves, by shape. */
  | "WORD_SPLIT"
  | "REPEATED_LETTER"
  /** Groups of up to three digits, by length. */
  | "DIGITS"
  | "SYMBOL_PIECE"
  /** Runs of symbols: +1 behind a blank, +2 with a line break behind them. */
  | "SYMBOL_RUN"
  | "SYMBOL_LENGTH"
  | "SYMBOL_SPLIT"
  /** Long runs of one symbol, and their length. */
  | "SYMBOL_RULE"
  | "SYMBOL_RULE_LENGTH"
  | "SPACES"
  | "SPACES_EXCESS"
  | "SPACES_LONG"
  | "TABS"
  | "TABS_EXCESS"
  /** Runs of line breaks, by length. */
  | "NEWLINES"
  /** The same behind symbols with a line break. */
  | "BLANK_LINES"
  | "NEWLINES_EXCESS"
  /** Runs of spaces between line breaks. */
  | "NEWLINE_INDENT"
  /** Words with letters beyond ASCII, by script: with a prefix and without. */
  | "SCRIPT_WORD"
  | "SCRIPT_BARE_WORD"
  | "SCRIPT_UNIT"
  | "SCRIPT_PIECE"
  /** Code units that are no piece by themselves, by script. */
  | "UNKNOWN_UNIT";

/** How many numbers each feature has, in their order. */
export const featureSizes: Readonly<Record<FeatureName, number>> = {
  WORD_PIECE: 4 * PIECE_CLASSES,
  WORD_LENGTH: 3 * caps.WORD_CAP,
  WORD_EXCESS: 3,
  WORD_SPLIT: 3,
  REPEATED_LETTER: 1,
  DIGITS: 3,
  SYMBOL_PIECE: PIECE_CLASSES,
  SYMBOL_RUN: 4,
  SYMBOL_LENGTH: 1,
  SYMBOL_SPLIT: 1,
  SYMBOL_RULE: 1,
  SYMBOL_RULE_LENGTH: 1,
  SPACES: caps.SPACE_CAP,
  SPACES_EXCESS: 1,
  SPACES_LONG: 1,
  TABS: caps.TAB_CAP,
  TABS_EXCESS: 1,
  NEWLINES: caps.NEWLINE_CAP,
  BLANK_LINES: caps.NEWLINE_CAP,
  NEWLINES_EXCESS: 1,
  NEWLINE_INDENT: 1,
  SCRIPT_WORD: scripts.length,
  SCRIPT_BARE_WORD: scripts.length,
  SCRIPT_UNIT: scripts.length,
  SCRIPT_PIECE: scripts.length,
  UNKNOWN_UNIT: scripts.length,
};

export const FEATURE_COUNT: number = Object.values(featureSizes).reduce((sum, size) => sum + size, 0);

/** Where each feature's numbers begin, beside the caps and offsets that the scan needs. */
export const features: Readonly<Record<FeatureName, number>> & typeof caps & typeof places & typeof shapes = {
  ...starts(),
  ...caps,
  ...places,
  ...shapes,
};

function starts(): Record<FeatureName, number> {
  let next = 0;
  const result = { ...featureSizes };
  for (const name of Object.keys(featureSizes) as FeatureName[]) {
    result[name] = next;
    next += featureSizes[name];
  }
  return result;
}
