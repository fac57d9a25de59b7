/** A vocabulary in the form in which the package ships it: two strings, which load several times faster than a list of 200,000
 *  tokens. */
import { Buffer } from "../bytes.ts";

export interface PackedTokens {
  /** The bytes of all tokens, in the order of their ranks. */
  readonly pool: Uint8Array;
  /** Has one entry more than there are tokens: a token ends where the next one begins. */
  readonly starts: Uint32Array;
}

/** The same as text. */
export interface PackedText {
  /** Base64 of the bytes. */
  readonly pool: string;
  /** Base64 of the length of each token, one byte each. */
  readonly lengths: string;
}

/** A token's place in the list is its rank. A token that is not valid UTF-8 is given as bytes. */
export function packTokens(tokens: readonly (string | readonly number[])[]): PackedTokens {
  const starts = new Uint32Array(tokens.length + 1);
  const encoder = new TextEncoder();
  let pool = new Uint8Array(tokens.length * 8);
  let used = 0;
  for (let rank = 0; rank < tokens.length; rank++) {
    starts[rank] = used;
    const token = tokens[rank] ?? "";
    if (used + token.length * 3 > pool.length) pool = grown(pool);
    if (typeof token === "string") used += encoder.encodeInto(token, pool.subarray(used)).written;
    else {
      pool.set(token, used);
      used += token.length;
    }
  }
  starts[tokens.length] = used;
  return { pool: pool.slice(0, used), starts };
}

function grown(pool: Uint8Array): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(pool.length * 2);
  larger.set(pool);
  return larger;
}

/** The longest token of a known vocabulary has 128 bytes. */
export function packText(tokens: readonly (string | readonly number[])[]): PackedText {
  const { pool, starts } = packTokens(tokens);
  const lengths = Array.from(starts.subarray(1), (end, rank) => end - starts[rank]!);
  if (lengths.some((length) => length > 255)) throw new RangeError("a token has more than 255 bytes");
  return { pool: Buffer.from(pool.buffer).toString("base64"), lengths: Buffer.from(lengths).toString("base64") };
}

export function unpackTokens(packed: PackedText): PackedTokens {
  const lengths = Buffer.from(packed.lengths, "base64");
  const starts = new Uint32Array(lengths.length + 1);
  for (let rank = 0; rank < lengths.length; rank++) starts[rank + 1] = starts[rank]! + lengths[rank]!;
  return { pool: Buffer.from(packed.pool, "base64"), starts };
}
