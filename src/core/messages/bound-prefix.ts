/** What a model that binds thinking compares: the system text, the tools and the messages before each block of thinking, in
 *  a form without what it ignores (platform.claude.com, preserved thinking, 2026-10). */
import { type Fields, isPlainObject } from "../text/index.ts";

/** System text and tools of a request. */
export interface BoundParts {
  readonly system?: unknown;
  readonly tools?: readonly object[] | null | undefined;
}

/** How system text or tools differ from those that earlier thinking is bound to. A model that binds thinking refuses or
 *  drops that thinking. */
export interface BindingChange {
  /** The first character at which the system text differs. Absent if it is the same. */
  readonly systemAt?: number;
  /** The names of tools. Their order does not count, nor do tools that are loaded on demand. */
  readonly addedTools: readonly string[];
  readonly removedTools: readonly string[];
  readonly changedTools: readonly string[];
}

/** Returns undefined if the model takes both for the same. */
export function findBindingChange(before: BoundParts, after: BoundParts): BindingChange | undefined {
  const isSameSystem = sortedJson(contentForm(before.system)) === sortedJson(contentForm(after.system));
  const [had, has] = [toolForms(before), toolForms(after)];
  const addedTools = [...has.keys()].filter((name) => !had.has(name));
  const removedTools = [...had.keys()].filter((name) => !has.has(name));
  const changedTools = [...has].flatMap(([name, form]) => (had.has(name) && had.get(name) !== form ? [name] : []));
  if (isSameSystem && addedTools.length + removedTools.length + changedTools.length === 0) return undefined;
  if (isSameSystem) return { addedTools, removedTools, changedTools };
  const [first, second] = [systemText(before), systemText(after)];
  let systemAt = 0;
  while (systemAt < first.length && first[systemAt] === second[systemAt]) systemAt++;
  return { systemAt, addedTools, removedTools, changedTools };
}

function systemText({ system }: BoundParts): string {
  return blocksIn(system)
    .map(({ text }) => String(text ?? "").trim())
    .join("\n");
}

function toolForms({ tools }: BoundParts): Map<string, string> {
  const counted = (tools ?? []).filter((tool) => (Object(tool) as Fields).defer_loading !== true);
  return new Map(
    counted.map((tool) => {
      // Tools are named at the top, or in `function` in OpenAI's chat. One that the provider runs may only have a type.
      const { name, type, function: inner } = tool as Fields;
      return [String(name ?? (Object(inner) as Fields).name ?? type), blockForm(tool as Fields) ?? ""];
    }),
  );
}

/** Returns the form of each block that counts. A string equals a list with one text. */
export function contentForm(content: unknown): string[] {
  return blocksIn(content).flatMap((block) => blockForm(block) ?? []);
}

export function blocksIn(content: unknown): readonly Fields[] {
  if (content === undefined || content === null) return [];
  return Array.isArray(content) ? content.filter(isPlainObject) : [{ type: "text", text: content }];
}

/** Returns undefined for a text of white space alone, which does not count. Nor do cache markers, the order of keys, and
 *  white space around a text. */
export function blockForm(block: Fields): string | undefined {
  const { cache_control: _marker, ...rest } = block;
  if (rest.type === "text" && typeof rest.text === "string") {
    const text = rest.text.trim();
    return text === "" ? undefined : sortedJson({ ...rest, text });
  }
  return sortedJson(rest.type === "tool_result" ? { ...rest, content: contentForm(rest.content) } : rest);
}

function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const fields = Object.entries(value).filter(([, each]) => each !== undefined);
  const sorted = fields.sort(([first], [second]) => (first < second ? -1 : 1));
  return `{${sorted.map(([key, each]) => `${JSON.stringify(key)}:${sortedJson(each)}`).join(",")}}`;
}
