/** Classifies UTF-16 code units for the estimator: a class that decides where words end, and a script that decides what
 *  they cost. Both are in one byte, `script << 3 | class`. */
import { classTable } from "./pretoken-classes.ts";

export const characterClasses = {
  LOWER: 0,
  UPPER: 1,
  /** Letters without case and combining marks. They can be in the place of either case. */
  UNCASED: 2,
  DIGIT: 3,
  SPACE: 4,
  NEWLINE: 5,
  SYMBOL: 6,
} as const;

/** The first code unit of each script, and its row in the coefficients. Scripts in the same row cost the same. Unlisted
 *  scripts are `other`. */
const scriptStarts = [
  [0x0000, "ascii"],
  [0x0080, "latin"],
  [0x0370, "greek"],
  [0x0400, "cyrillic"],
  [0x0530, "caucasian"], // Armenian
  [0x0590, "hebrew"],
  [0x0600, "arabic"],
  [0x0780, "other"],
  [0x0900, "devanagari"],
  [0x0980, "indic"],
  [0x0e00, "thai"],
  [0x0e80, "southeast-asian"], // Lao, Tibetan, Burmese
  [0x10a0, "caucasian"], // Georgian
  [0x1100, "hangul"],
  [0x1200, "other"],
  [0x1780, "southeast-asian"], // Khmer
  [0x1800, "other"],
  [0x1e00, "latin"],
  [0x1f00, "greek-extended"],
  [0x2000, "symbol"],
  [0x2c00, "other"],
  [0x2e80, "cjk-symbol"],
  [0x3040, "kana"],
  [0x3100, "cjk-symbol"],
  [0x3400, "han"],
  [0xa000, "other"],
  [0xac00, "hangul"],
  [0xd7b0, "other"],
  [0xd800, "surrogate"],
  [0xe000, "other"],
  [0xf900, "han"],
  [0xfb00, "arabic"],
  [0xfe00, "symbol"],
  [0xff00, "cjk-symbol"],
] as const;

export type Script = (typeof scriptStarts)[number][1];
export const scripts: readonly Script[] = [...new Set(scriptStarts.map(([, script]) => script))];

const { UPPER, LOWER, UNCASED, DIGIT, SPACE, NEWLINE, SYMBOL } = characterClasses;

/** The kind of every code unit. */
export const characterKinds: Uint8Array = classTable(
  0x10000,
  [UPPER, LOWER, UNCASED, UNCASED, DIGIT, SPACE, NEWLINE, SYMBOL],
  scriptStarts.map(([start, script]) => ({ start, bits: scripts.indexOf(script) << 3 })),
);
