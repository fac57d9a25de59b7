/** Cuts a text into chunks of at most `maxUnits` UTF-16 units that together are the text: behind the last line break of the second
 *  half where there is one, never inside a surrogate pair. */
export function chunkText(text: string, maxUnits: number): string[] {
  const chunks: string[] = [];
  for (let start = 0; start < text.length; ) {
    const end = chunkEnd(text, start, maxUnits);
    chunks.push(text.slice(start, end));
    start = end;
  }
  return chunks;
}

function chunkEnd(text: string, start: number, maxUnits: number): number {
  const limit = start + maxUnits;
  if (limit >= text.length) return text.length;
  // A line break further ahead would leave a chunk too short to compare with the others.
  const lineEnd = text.lastIndexOf("\n", limit - 1) + 1;
  if (lineEnd > start + maxUnits / 2) return lineEnd;
  const cutsPair = isHighSurrogate(text.charCodeAt(limit - 1)) && isLowSurrogate(text.charCodeAt(limit));
  return cutsPair && maxUnits > 1 ? limit - 1 : limit;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
