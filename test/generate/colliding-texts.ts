/** Different texts that hashes without a key, which earlier versions used, take for the same. */

/** The first 60 bits of their SHA-256 are the same: `lnxSmej_yi` in base64url, by which lines were compared.
 *  They were found with distinguished points (van Oorschot and Wiener) in 2^31.7 hashes: 4.5 minutes on two busy cores. */
export const collidingLines = [
  "verifySignature(blob, key); //9zuFfkb46u",
  "new Function(atob(blob))(); //BmZcnuf_l9",
] as const;

/** Two texts that differ only in a lone surrogate. UTF-8 has the same three bytes for all of these. */
export const loneSurrogates = [
  'const separator = "\ud800"; // of the signed fields',
  'const separator = "\udfff"; // of the signed fields',
] as const;

/** Returns another text with the same hash as a message had in earlier versions: two bits of one lane cancel out. Takes
 *  texts of one-byte characters, at least 48 of them. */
export function collidingMessage(text: string): string {
  const flip = (at: number, bits: number): string => String.fromCharCode(text.charCodeAt(at) ^ bits);
  return text.slice(0, 3) + flip(3, 0x80) + text.slice(4, 17) + flip(17, 0x10) + text.slice(18);
}
