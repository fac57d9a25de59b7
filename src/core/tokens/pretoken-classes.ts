import { Buffer } from "../bytes.ts";
import { pretokenClasses } from "./pretoken-classes.data.ts";

/** From this code point on, each value of the table also has these bits, up to the next band. */
export interface Band {
  readonly start: number;
  readonly bits: number;
}

/** Returns a table from code point to the value of its class, for the code points below `size`. `bands` are in order, and the
 *  first one starts at 0. */
export function classTable(
  size: number,
  // For Lu Lt, Ll, Lm Lo, M, N, white space, line breaks and the rest, in this order.
  values: readonly [number, number, number, number, number, number, number, number],
  bands: readonly Band[] = [{ start: 0, bits: 0 }],
): Uint8Array {
  const table = new Uint8Array(size);
  // This runs at every start of a command that counts, before anything is compiled. So it reads bytes, calls nothing for a
  // digit, and visits each run once.
  const codes = Buffer.from(pretokenClasses, "latin1");
  let [start, band, bandEnd] = [0, 0, 0];
  for (let at = 0; at < codes.length && start < size; ) {
    const value = values[codes[at++]! - 0x41]!;
    let length = 0;
    // Digits in base 36. A capital is the letter of the next class.
    for (let code = codes[at]!; code >= 0x61 || code < 0x41; code = codes[++at]!) {
      length = length * 36 + code - (code >= 0x61 ? 0x57 : 0x30);
    }
    const end = start + (length || 1);
    for (; start < end; band += start === bandEnd ? 1 : 0) {
      bandEnd = bands[band + 1]?.start ?? size;
      const filled = Math.min(end, bandEnd);
      table.fill(value | bands[band]!.bits, start, filled);
      start = filled;
    }
  }
  return table;
}
