/** A file that is ours as a whole. Its ownership line says so, and by its hash whether a person has changed the file since. */
import { blockHash, canonicalBody } from "./block-markers.ts";

export type Ownership = { readonly kind: "ours"; readonly edited: boolean } | { readonly kind: "foreign" };

/** `preamble` comes first (front matter as a rule), then the ownership line, then `body`. Both are byte strings. */
export function renderOwnedFile({ preamble, body }: { preamble: string; body: string }): string {
  const text = canonicalBody(canonicalBody(preamble) + body);
  const top = endOfFrontMatter(text);
  return `${text.slice(0, top)}<!-- plimsoll:owns sha256=${blockHash(text)} -->\n${text.slice(top)}`;
}

/** Only a line in the very place where we put it makes a file ours: everything else belongs to a person. */
export function readOwnership(file: string): Ownership {
  const text = canonicalBody(file.startsWith("\xef\xbb\xbf") ? file.slice(3) : file);
  const top = endOfFrontMatter(text);
  const line = /^<!-- plimsoll:owns sha256=(\S*) -->\n/.exec(text.slice(top, top + 100));
  if (line === null) return { kind: "foreign" };
  const rest = text.slice(0, top) + text.slice(top + line[0].length);
  return { kind: "ours", edited: line[1] !== blockHash(rest) };
}

/** Tools read front matter only at the top of a file, so nothing may stand before it. */
function endOfFrontMatter(text: string): number {
  if (!text.startsWith("---\n")) return 0;
  const end = text.indexOf("\n---\n", 3);
  return end === -1 ? 0 : end + 5;
}
