/** What a scan reads and writes. One buffer for all scans: they are synchronous, and a compiler knows the place of a constant array. */
import { FEATURE_COUNT } from "./features.ts";

/** Units that are scanned at a time: the copy of a long text stays small. */
const PART_LENGTH: number = 1 << 16;

const bytes: Buffer = Buffer.alloc(2 * PART_LENGTH);

/** The part of the text that is scanned, as UTF-16 code units: typed arrays are read faster than strings, copy included. */
export const units: Uint16Array = new Uint16Array(bytes.buffer, bytes.byteOffset, PART_LENGTH);

/** One number a feature. */
export const tally: Int32Array = new Int32Array(FEATURE_COUNT);

/** Copies the part of `text` that begins at `start`; returns how many units it has. */
export function readPart(text: string, start: number): number {
  return (
    bytes.write(text.length <= PART_LENGTH ? text : text.slice(start, start + PART_LENGTH), "utf16le") / 2
  );
}
