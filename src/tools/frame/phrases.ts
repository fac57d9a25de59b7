/** Phrases of warnings, and of the one line that stays of a result in the work log. */
import { type CutText, printable, shorten } from "../../text/index.ts";

/** On one line, and without characters that could steer a terminal. */
export function shortened(text: string, maxCharacters: number): string {
  return printable(shorten(text, maxCharacters));
}

/** How often each name occurs, most often first, ties by name. */
export function countNames(names: Iterable<string>): [name: string, count: number][] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([a, first], [b, second]) => second - first || (a < b ? -1 : 1));
}

/** `store.ts (9), main.ts (5), +10 more`. */
export function listCounts(counts: readonly (readonly [string, number])[], most: number): string {
  return listNames(
    counts.map(([name, count]) => `${shortened(name, 40)} (${count})`),
    most,
  );
}

/** `a.ts, b.ts, +2 more`; `total` when more exist than are named. */
export function listNames(names: readonly string[], most: number, total: number = names.length): string {
  const shown = names.slice(0, most);
  const rest = Math.max(total, names.length) - shown.length;
  return [...shown, ...(rest > 0 ? [`+${rest} more`] : [])].join(", ");
}

/** A text that was cut, with what is missing: `text… [12 more characters]`. */
export function withCutNote({ text, omitted }: CutText): string {
  return omitted === 0 ? text : `${text}… [${omitted} more characters]`;
}

/** `512B`, `14.6KB`, `45KB`, `1MB`. */
export function fileSize(bytes: number): string {
  const [divisor, unit] = bytes < 1024 ? [1, "B"] : bytes < 1024 ** 2 ? [1024, "KB"] : [1024 ** 2, "MB"];
  return `${Number((bytes / divisor).toFixed(1))}${unit}`;
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** The items of a delivered page that are whole: of one that was larger than a page only a part is there. */
export function wholeItems<Item>(items: unknown, isItem: (item: Partial<Item>) => boolean): Item[] {
  if (!Array.isArray(items)) return [];
  return items.filter((item) => typeof item === "object" && item !== null && isItem(item));
}

/** `500 of 2847 files`, or `12 files` when that is all. */
export function countOf(data: Readonly<Record<string, unknown>>, noun: Noun): string {
  const { returned = 0, total = returned } = data;
  const counted = numbered(Number(total), noun);
  return total === returned ? counted : `${returned} of ${counted}`;
}

type Noun = readonly [one: string, many: string];

/** `1 file`, `2 files`. */
export function numbered(count: number, [one, many]: Noun): string {
  return `${count} ${count === 1 ? one : many}`;
}
