import { Buffer } from "../bytes.ts";

/** A byte string holds one byte of a file in each character, as `latin1` reads it. Editing this form keeps every other
 *  byte, valid UTF-8 or not. */
export function toByteString(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

/** Bytes that are not UTF-8 become U+FFFD. Use this to show text, never to write it back. */
export function fromByteString(bytes: string): string {
  return Buffer.from(bytes, "latin1").toString("utf8");
}
