export interface TruncatedText {
  readonly text: string;
  readonly truncated: boolean;
}

/** The longest start of a text within `maxBytes` of UTF-8 that ends with a whole line; with a whole character where not even one line fits. */
export function truncateBytes(text: string, maxBytes: number): TruncatedText {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return { text, truncated: false };
  const bytes = Buffer.from(text).subarray(0, Math.max(0, maxBytes));
  const lineEnd = bytes.lastIndexOf(0x0a);
  if (lineEnd !== -1) return { text: bytes.subarray(0, lineEnd + 1).toString(), truncated: true };
  // The first byte that was cut off tells whether a character was cut through: those inside one are 10xxxxxx.
  let end = bytes.length;
  const whole = Buffer.from(text);
  while (end > 0 && (whole[end]! & 0xc0) === 0x80) end--;
  return { text: whole.subarray(0, end).toString(), truncated: true };
}
