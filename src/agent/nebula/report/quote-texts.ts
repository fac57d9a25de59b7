import { maxEntryLength } from "../../../compose/index.ts";

/** `signature: parse(text: string): Ast` is no YAML, and what everybody writes: an entry with the texts of its fields in quotes, or all of
 *  it where it is only a text. What has quotes stays as it is. Of lists in brackets only the braces around an entry are understood. */
export function quoteTexts(entry: string): string {
  const text = entry.trimEnd();
  // Longer than its texts may be, it is refused anyway.
  if (text.length > 5 * maxEntryLength) return entry;
  const start = /^[ \t]*- +\{/.exec(text)?.[0];
  if (start !== undefined && text.endsWith("}"))
    return `${start}${quoteInBraces(text.slice(start.length, -1))}}`;
  const quoted = text.replaceAll(fieldLine, (_, field: string, value: string) => field + quote(value));
  if (quoted !== text) return quoted;
  return text.replace(/^([ \t]*- +)([^"'|>\s].*)$/, (_, mark: string, value: string) => mark + quote(value));
}

const fields = "(?:package|kind|signature|file|path|detail|affects|text):";
const fieldLine = new RegExp(`^([ \\t]*(?:- +)?${fields} +)([^"'|>\\s].*)$`, "gm");
const fieldInBraces = new RegExp(`((?:^|,)\\s*${fields}\\s+)`);

function quote(value: string): string {
  return `'${value.trimEnd().replaceAll("'", "''")}'`;
}

/** A value goes up to the next field. */
function quoteInBraces(inside: string): string {
  const [before = "", ...parts] = inside.replace(/,\s*$/, "").split(fieldInBraces);
  const pairs: { readonly field: string; value: string }[] = [];
  for (let index = 0; index < parts.length; index += 2) {
    const [field = "", value = ""] = parts.slice(index);
    const last = pairs.at(-1);
    if (last === undefined || isWhole(last.value)) pairs.push({ field, value });
    else last.value += field + value;
  }
  const quoted = pairs.map(({ field, value }) => field + (/^["']|^$/.test(value) ? value : quote(value)));
  return before + quoted.join("");
}

/** In `find(code: string, kind: Kind)` the second is no field, nor is what stands in quotes. */
function isWhole(value: string): boolean {
  if (value.startsWith('"')) return /^"(?:[^"\\]|\\.)*"\s*$/s.test(value);
  if (value.startsWith("'")) return /^'(?:[^']|'')*'\s*$/.test(value);
  const brackets = value.match(/[([{}\])]/g) ?? [];
  return brackets.filter((each) => "([{".includes(each)).length * 2 === brackets.length;
}
