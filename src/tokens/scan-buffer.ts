/** What a scan reads and writes. All scans share one buffer: they are synchronous, and the compiler knows the address
 *  of a constant array. */
import { FEATURE_COUNT } from "./features.ts";

/** Units that are scanned at a time. Keeps the copy of a long text small. */
export const PART_LENGTH: number = 1 << 16;

const bytes: Buffer = Buffer.alloc(2 * PART_LENGTH);

/** The part of the text that is being scanned, as UTF-16 code units. Reading typed arrays is faster than reading
 *  strings, even with the copy. */
export const units: Uint16Array = new Uint16Array(bytes.buffer, bytes.byteOffset, PART_LENGTH);

/** One number per feature. */
export const tally: Int32Array = new Int32Array(FEATURE_COUNT);

/** Copies the part of `text` that begins at `start`. Returns its number of units. */
export function readPart(text: string, start: number): number {
  return bytes.write(text.length <= PART_LENGTH ? text : text.slice(start, start + PART_LENGTH), "utf16le") / 2;
}
