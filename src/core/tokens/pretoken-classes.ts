import { pretokenClasses } from "./pretoken-classes.data.ts";

/** The values for Lu Lt, Ll, Lm Lo, M, N, white space, line breaks and the rest, in this order. */
type ClassValues = readonly [number, number, number, number, number, number, number, number];

/** Returns a table from code point to the value of its class, for the code points below `size`. */
export function classTable(size: number, values: ClassValues): Uint8Array {
  const table = new Uint8Array(size);
  let start = 0;
  // Reads the runs by hand: a regular expression took six milliseconds of every start.
  for (let at = 0; at < pretokenClasses.length && start < size; ) {
    const value = values[pretokenClasses.charCodeAt(at++) - 0x41]!;
    let length = 0;
    for (let digit = digitAt(at); digit >= 0; digit = digitAt(++at)) length = length * 36 + digit;
    const end = start + Math.max(1, length);
    table.fill(value, start, end);
    start = end;
  }
  return table;
}

/** Returns the value of a digit in base 36, or -1 for the letter of the next class, which is a capital. */
function digitAt(at: number): number {
  const unit = pretokenClasses.charCodeAt(at);
  if (unit >= 0x61) return unit - 0x57;
  return unit < 0x41 ? unit - 0x30 : -1;
}
