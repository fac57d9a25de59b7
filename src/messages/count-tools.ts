import type { Counter } from "../tokens/index.ts";
import { cacheOf } from "./count-cache.ts";
import { type CountOptions, chooseFormat } from "./count-messages.ts";
import { fail, fieldsAt, nameOf } from "./fields.ts";
import type { MessageFormat, ToolChoice } from "./message-format.ts";

export interface CountToolsOptions extends CountOptions {
  /** `any` also stands for a forced tool. Absent: `auto`. */
  toolChoice?: ToolChoice | undefined;
}

/** Tokens of tool definitions, and of the system prompt that the provider adds for them; 0 only for no tools.
 *  Absent a format they are Anthropic's. A definition object is counted once: only another schema or a description of another length is noticed. */
export function countTools(
  tools: readonly object[],
  counter: Counter,
  options: CountToolsOptions = {},
): number {
  if (!Array.isArray(tools)) return fail("tools", `must be an array, not ${nameOf(tools)}`);
  if (tools.length === 0) return 0;
  const format = chooseFormat([], options.format);
  let tokens = format.toolPromptTokens(options.model, options.toolChoice ?? "auto");
  for (const [index, tool] of tools.entries())
    tokens += countTool(tool, `tools[${index}]`, { format, counter });
  return tokens;
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
  const content = fields.input_schema;
  const extent = String(fields.description).length;
  if (known?.format === format && known.content === content && known.extent === extent) return known.tokens;
  const { text, fixedTokens } = format.readTool(fields, path);
  const { tool: frame, toolFactor } = format.overheads;
  const tokens = Math.ceil(cache.countText(text) * toolFactor) + fixedTokens + frame;
  cache.tools.set(fields, { format, tier: undefined, content, extent, tokens });
  return tokens;
}
