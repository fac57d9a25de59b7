/** Ids of originals: tool results that were shortened, trimmed or stored. Every part of the library takes its ids from
 *  here, so that an id names one original, whatever made it. Ids are names: they are sent, so every process derives the
 *  same ones from the same conversation. */
import { createHash } from "../crypto.ts";

/** Returns the id of what these facts identify: 16 base32 characters, 80 bits. Pass at least one fact that no file can
 *  know, such as the provider's id of a call, so that a file cannot contain the id. */
export function createOriginalId(facts: readonly (string | number)[]): string {
  const bytes = createHash("sha256").update(JSON.stringify(facts)).digest().subarray(0, 10);
  let [text, bits, value] = ["", 0, 0];
  const alphabet = "abcdefghijklmnopqrstuvwxyz234567";
  for (const byte of bytes) {
    value = (value << 8) | byte;
    for (bits += 8; bits >= 5; bits -= 5) text += alphabet[(value >>> (bits - 5)) & 31];
    value &= 31;
  }
  return text;
}

/** Returns the mark of a conversation, which stands in all notes about its results: 4 base32 characters. The seed is a
 *  fact that no file can know, so a file can only guess the mark. */
export function createMark(seed: string): string {
  return createOriginalId(["mark", seed]).slice(0, markLength);
}

const markLength = 4;

/** The form of a mark, for patterns of texts that have one. */
export const markPattern: string = `[a-z2-7]{${markLength}}`;

/** Whether a text has the form of an id, also of those that older versions wrote: `k3vbq5zoha` and `r12`. */
export function isOriginalId(text: string): boolean {
  return idForm.test(text);
}

/** The form of an id, for patterns of texts that have one. */
export const originalIdPattern = "(?:[a-z2-7]{16}|[a-z2-7]{10}|r\\d{1,8})";

const idForm = new RegExp(`^${originalIdPattern}$`);
