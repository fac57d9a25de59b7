/** JavaScript's texts may hold half of a surrogate pair, UTF-8 may not. */

/** Whether a cut at this index would part the two halves of one character. */
export function isInsidePair(text: string, index: number): boolean {
  const [before, after] = [text.charCodeAt(index - 1), text.charCodeAt(index)];
  return before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000;
}

/** The largest index up to `index` at which a cut leaves every character whole. */
export function characterStart(text: string, index: number): number {
  return isInsidePair(text, index) ? index - 1 : index;
}

/** Half of a pair becomes the replacement character that UTF-8 has for it, so that what is counted is what is sent. */
export function wellFormed(text: string): string {
  return text.replaceAll(/\p{Surrogate}/gu, "\ufffd");
}
