import { ContextError } from "../errors.ts";
import type { Counter } from "../tokens/index.ts";
import { cacheOf } from "./cache/count-cache.ts";
import { isUnchanged, takeSnapshot } from "./cache/snapshot.ts";
import type { CountOptions } from "./count-parts.ts";
import { failAt, fieldsAt, typeName } from "./fields.ts";
import { chooseFormat } from "./formats/index.ts";
import { type MessageFormat, type ToolChoice, toolChoices } from "./message-format.ts";

export interface CountToolsOptions extends CountOptions {
  /** The `type` of the request's tool_choice. Absent: `auto`. */
  toolChoice?: ToolChoice | undefined;
}

/** Tokens of tool definitions, and of the system prompt that the provider adds for them; 0 only for no tools.
 *  Absent a format they are Anthropic's. A definition object is counted once and again when it was edited. */
export function countTools(
  tools: readonly object[],
  counter: Counter,
  options: CountToolsOptions = {},
): number {
  if (!Array.isArray(tools)) return failAt("tools", `must be an array, not ${typeName(tools)}`);
  if (tools.length === 0) return 0;
  const format = chooseFormat([], options.format);
  let tokens = format.toolPromptTokens(options.model, checkToolChoice(options.toolChoice ?? "auto"));
  for (const [index, tool] of tools.entries())
    tokens += countTool(tool, `tools[${index}]`, { format, counter });
  return tokens;
}

function checkToolChoice(toolChoice: ToolChoice): ToolChoice {
  if (toolChoices.includes(toolChoice)) return toolChoice;
  throw new ContextError("invalid_argument", `unknown tool choice ${JSON.stringify(toolChoice)}`, {
    hint: `Tool choices are ${toolChoices.join(", ")}.`,
  });
}

function countTool(
  tool: unknown,
  path: string,
  context: { format: MessageFormat; counter: Counter },
): number {
  const { format, counter } = context;
  const cache = cacheOf(counter);
  const fields = fieldsAt(tool, path);
  const known = cache.tools.get(fields);
  if (known?.format === format && isUnchanged(fields, known.snapshot)) return known.tokens;
  const { text, fixedTokens } = format.readTool(fields, path);
  const { tool: frame, toolFactor } = format.overheads;
  const tokens = Math.ceil(cache.texts.count(text) * toolFactor) + fixedTokens + frame;
  cache.tools.set(fields, { format, snapshot: takeSnapshot(fields), tokens });
  return tokens;
}
