/** Single values of manifests, read without a parser of the whole: a manifest that is damaged elsewhere still has its name. */

/** A text in JSON by its keys; undefined where there is none, or no JSON. */
export function memberOfJson(text: string, ...keys: readonly string[]): string | undefined {
  try {
    let value: unknown = JSON.parse(text);
    for (const key of keys) value = (value as Record<string, unknown> | null)?.[key];
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** No name is longer, and on a longer line the patterns below would take their time. */
const maxLineLength = 500;

/** The text behind a key of a TOML table, or of an INI section. */
export function tomlString(text: string, table: string, key: string): string | undefined {
  let current = "";
  for (const line of text.split("\n")) {
    if (line.length > maxLineLength) continue;
    const header = /^\s*\[+\s*([^[\]]+?)\s*\]/.exec(line)?.[1];
    if (header !== undefined) current = header;
    else if (current === table) {
      const [, found, value] = /^\s*"?([\w-]+)"?\s*=\s*["']([^"']*)["']/.exec(line) ?? [];
      if (found === key) return value;
    }
  }
  return undefined;
}

/** The texts directly inside the outermost element, by tag. */
export function membersOfXml(text: string): Map<string, string> {
  const members = new Map<string, string>();
  const behind = text.split("<!--").map((part, index) => (index === 0 ? part : (part.split("-->")[1] ?? "")));
  let depth = 0;
  // The lookahead keeps a tag that never ends from being tried at every length.
  const tags = behind.join("").matchAll(/<(\/?)([a-z][\w.:-]*)(?![\w.:-])([^<>]*)>([^<]*)/gi);
  for (const [, slash, tag = "", attributes, content = ""] of tags) {
    if (slash === "/") depth--;
    else {
      if (depth === 1 && !members.has(tag)) members.set(tag, content.trim());
      if (!attributes?.endsWith("/")) depth++;
    }
  }
  return members;
}
