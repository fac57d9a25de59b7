/** What of an item is cut when the item is larger than a page: its longest string, or where that does not help its whole JSON. */
export interface LongText {
  readonly at: "text" | "json";
  /** JSON pointer to the string; absent for JSON. */
  readonly pointer?: string;
  readonly text: string;
  /** The item with a part of the text in its place; JSON stands alone. */
  shell(part: string): unknown;
}

/** Depends on the item alone, so that the parts of several pages are parts of the same text. */
export function longestText(item: unknown): LongText | undefined {
  const path = longestPath(item);
  if (path === undefined) return undefined;
  const text = path.reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], item) as string;
  return { at: "text", pointer: pointerOf(path), text, shell: (part) => replaceAt(item, path, part) };
}

export function jsonText(item: unknown): LongText {
  return { at: "json", text: JSON.stringify(item), shell: (part) => part };
}

/** Results of tools are not deeper; where one is, its JSON is cut. */
const mostDepth = 8;

/** Ties go to the first. */
function longestPath(item: unknown): string[] | undefined {
  let best: string[] | undefined;
  let bestLength = -1;
  const path: string[] = [];
  const visit = (value: unknown): void => {
    if (typeof value === "string" && value.length > bestLength)
      [best, bestLength] = [[...path], value.length];
    if (typeof value !== "object" || value === null || path.length === mostDepth) return;
    for (const [key, child] of Object.entries(value)) {
      path.push(key);
      visit(child);
      path.pop();
    }
  };
  visit(item);
  return best;
}

function pointerOf(path: readonly string[]): string {
  return path.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

function replaceAt(value: unknown, [key, ...rest]: readonly string[], part: string): unknown {
  if (key === undefined) return part;
  const child = (value as Record<string, unknown>)[key];
  const replaced = replaceAt(child, rest, part);
  if (Array.isArray(value)) return value.with(Number(key), replaced);
  return { ...(value as object), [key]: replaced };
}
