/**
 * A byte string holds one byte of a file in each character, as `latin1` reads it. Text that is edited in this form keeps
 * every byte that is not ours, valid UTF-8 or not.
 */
export function toByteString(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

/** Bytes that are not UTF-8 come out as U+FFFD: for showing, never for writing back. */
export function fromByteString(bytes: string): string {
  return Buffer.from(bytes, "latin1").toString("utf8");
}
