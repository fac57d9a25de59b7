import { pretokenClasses } from "./pretoken-classes.data.ts";

/** Lu Lt, Ll, Lm Lo, M, N, white space, line breaks, the rest: the order of the values that `classTable` takes. */
export type ClassValues = readonly [number, number, number, number, number, number, number, number];

/** A table from code point to the value of its class, for the code points below `size`. */
export function classTable(size: number, values: ClassValues): Uint8Array {
  const table = new Uint8Array(size);
  let codePoint = 0;
  for (const [, name, length] of pretokenClasses.matchAll(/([A-H])([0-9a-z]*)/g)) {
    if (codePoint >= size) break;
    const next = codePoint + (length === "" ? 1 : Number.parseInt(length!, 36));
    table.fill(values[name!.charCodeAt(0) - 0x41]!, codePoint, next);
    codePoint = next;
  }
  return table;
}
