import { ContextError } from "../../errors.ts";

/** The text without every `<tag>…</tag>`, line breaks included. White space goes along only where it would be left over at the
 *  text's own beginning or end; a text without the tag comes back as it is. */
export function removeXmlTag(tagName: string, text: string): string {
  if (typeof tagName !== "string" || tagName === "") {
    throw new ContextError("invalid_argument", "a tag must have a name", {
      hint: 'Name it without brackets: removeXmlTag("checkpoint_id", text).',
    });
  }
  const kept = textsBetween(tagName, text);
  if (kept.length === 1) return text;
  let result = kept.join("");
  if (kept[0]?.trim() === "") result = result.trimStart();
  if (kept.at(-1)?.trim() === "") result = result.trimEnd();
  return result;
}

/** A tag ends at the first end that follows, as it does for a lazy regular expression; but many beginnings without an end cost
 *  one pass here, and a pass each there. */
function textsBetween(tagName: string, text: string): string[] {
  const [opening, closing] = [`<${tagName}>`, `</${tagName}>`];
  const texts: string[] = [];
  let from = 0;
  for (;;) {
    const start = text.indexOf(opening, from);
    const end = start < 0 ? -1 : text.indexOf(closing, start + opening.length);
    if (end < 0) break;
    texts.push(text.slice(from, start));
    from = end + closing.length;
  }
  texts.push(text.slice(from));
  return texts;
}
