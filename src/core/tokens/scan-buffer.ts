/** What a scan reads and writes. All scans share one buffer: they are synchronous, and the compiler knows the address
 *  of a constant array. */
import { Buffer } from "../bytes.ts";
import { FEATURE_COUNT } from "./features.ts";

/** Units that are scanned at a time. Keeps the copy of a long text small. */
export const PART_LENGTH: number = 1 << 16;

const bytes: Buffer = Buffer.alloc(2 * PART_LENGTH);

/** The part of the text that is being scanned, as UTF-16 code units. Reading typed arrays is faster than reading
 *  strings, even with the copy. */
export const units: Uint16Array = new Uint16Array(bytes.buffer, bytes.byteOffset, PART_LENGTH);

// Not exported, because the compiler folds only constants that a module neither imports nor exports.
/** What each feature adds to the sum. */
const weights: Float64Array = new Float64Array(FEATURE_COUNT);
/** Its only entry is the sum. The compiler would allocate a number for each new value of a variable. */
const sum: Float64Array = new Float64Array(1);

/** Starts a sum, in which a feature counts as much as `featureWeights` says. */
export function startSum(featureWeights: Float64Array): void {
  weights.set(featureWeights);
  sum[0] = 0;
}

export function add(feature: number, times: number): void {
  sum[0]! += weights[feature]! * times;
}

export function currentSum(): number {
  return sum[0]!;
}

export function setSum(value: number): void {
  sum[0] = value;
}

/** Copies the part of `text` that begins at `start`. Returns its number of units. */
export function readPart(text: string, start: number): number {
  return bytes.write(text.length <= PART_LENGTH ? text : text.slice(start, start + PART_LENGTH), "utf16le") / 2;
}
