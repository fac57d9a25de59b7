/** What a model that binds thinking compares: the system text, the tools and the messages before each block of thinking, in
 *  a form without what it ignores (platform.claude.com, preserved thinking, 2026-10). */
import { type Fields, isPlainObject } from "../text/index.ts";
import { findModelRow, isClaude } from "../tokens/index.ts";

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

/** Whether a model ties each thinking block to everything before it. If that changes, the API refuses the block or drops
 *  it. A Claude that no table knows is newer than the table, so it binds: a request that keeps its prefix is valid for
 *  every model. */
export function bindsThinking(model: string | undefined): boolean {
  if (model === undefined || !isClaude(model)) return false;
  return findModelRow(model, claudeModels)?.binds ?? true;
}

interface ThinkingRow {
  readonly model: string;
  readonly binds: boolean;
}

const rows = (binds: boolean, models: readonly string[]): readonly ThinkingRow[] =>
  models.map((model) => ({ model, binds }));

export const claudeModels: readonly ThinkingRow[] = [
  // platform.claude.com/docs/en/build-with-claude/preserved-thinking/prefix-checks, 2026-11: these seven.
  ...rows(true, ["claude-fable-5.1", "claude-mythos-5.1", "claude-opus-5.5", "claude-sonnet-5.5", "claude-haiku-5.5"]),
  // platform.claude.com/docs/en/models/fable-5-2/whats-new-fable-5-2, 2026-11
  ...rows(true, ["claude-fable-5.2", "claude-mythos-5.2"]),
  // platform.claude.com/docs/en/build-with-claude, preserved thinking, 2026-10: older models check nothing.
  ...rows(false, ["claude-opus-5", "claude-sonnet-5", "claude-fable-5", "claude-mythos-5", "claude-mythos-preview"]),
  ...rows(false, ["claude-opus-4", "claude-opus-4.1", "claude-opus-4.5", "claude-opus-4.6", "claude-opus-4.7"]),
  ...rows(false, ["claude-opus-4.8", "claude-sonnet-4", "claude-sonnet-4.5", "claude-sonnet-4.6", "claude-haiku-4.5"]),
  ...rows(false, ["claude-opus-3", "claude-sonnet-3", "claude-sonnet-3.5", "claude-sonnet-3.7"]),
  ...rows(false, ["claude-haiku-3", "claude-haiku-3.5"]),
  // These have no thinking.
  ...rows(false, ["claude-2", "claude-2.0", "claude-2.1", "claude-v1", "claude-v2", "claude-instant"]),
];
