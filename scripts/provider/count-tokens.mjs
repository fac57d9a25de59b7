/** The provider's own counter. It is deliberately not Plimsoll's: `countFactor` says how far the two differ. */

/** Counts a text as roughly as a tokenizer's average: four letters, three digits or one sign a token.
 *  @param {string} text */
function countText(text) {
  let tokens = 0;
  for (const [run] of text.matchAll(/[\p{L}\p{M}]+|\d+|\s+|[^\p{L}\p{M}\d\s]+/gu)) {
    const isWord = /^[\p{L}\p{M}]/u.test(run);
    if (isWord) tokens += Math.ceil(run.length / (run.charCodeAt(0) < 0x250 ? 7 : 2));
    else if (/^\s/.test(run)) tokens += run === " " ? 0 : Math.ceil(run.length / 16);
    else tokens += Math.ceil(run.length / (/^\d/.test(run) ? 3 : 2));
  }
  return tokens;
}

/** Counts blocks, each text once: a conversation sends the same ones again and again.
 *  @param {{ count?: (text: string) => number, countFactor?: number }} options */
export function createBlockCounter({ count = countText, countFactor = 1 } = {}) {
  const known = new Map();
  return (block) => {
    const text = textsOf(block).join("\n");
    const tokens = known.get(text) ?? count(text);
    known.set(text, tokens);
    return Math.ceil((tokens + blockOverhead) * countFactor);
  };
}

/** Each block has a few tokens around it. */
const blockOverhead = 4;
/** Images and documents have no text. */
const mediaTokens = 1_500;

function textsOf(value) {
  if (value === null || value === undefined) return [];
  if (typeof value !== "object") return [String(value)];
  if (Array.isArray(value)) return value.flatMap(textsOf);
  if (/^(?:image|document|input_image|image_url)$/.test(value.type)) return ["word ".repeat(mediaTokens)];
  return Object.entries(value).flatMap(([key, inner]) => (uncounted.has(key) ? [] : textsOf(inner)));
}

/** What the model does not read as text. */
const uncounted = new Set(["cache_control", "signature", "type", "id", "tool_use_id", "call_id", "encrypted_content"]);
