import { ContextError } from "../errors.ts";
import type { Counter } from "../tokens/index.ts";
import {
  type CountContext,
  type CountOptions,
  countPart,
  createCountContext,
  frameTokens,
  getCache,
} from "./count-parts.ts";
import { failAt, fieldsAt, textOrListAt, typeName } from "./fields.ts";
import { chooseFormat } from "./formats/index.ts";
import { takeSnapshot } from "./json-snapshot.ts";
import type { MessageFormat, ToolChoice } from "./message-format.ts";

/**
 * Counts the tokens of a conversation as the provider bills it, with roles and wrappers. Count a system prompt outside
 * the list as a message of role `system`. Each message is counted once, even if it comes back as another object with
 * the same content; a message that was edited in place is counted again. Returns 0 for an empty list.
 *
 * @example
 * ```ts
 * import { countMessages } from "plimsoll/messages";
 * import { createCounter } from "plimsoll/tokens";
 *
 * const counter = await createCounter("auto", { model: "claude-sonnet-5" });
 * console.log(countMessages([{ role: "user", content: "Why is the build slow?" }], counter));
 * ```
 */
export function countMessages(messages: readonly object[], counter: Counter, options: CountOptions = {}): number {
  if (!Array.isArray(messages)) return failAt("messages", `must be an array, not ${typeName(messages)}`);
  if (messages.length === 0) return 0;
  const context = createCountContext(messages, counter, options);
  context.cache.texts.restart();
  context.cache.args.restart();
  let tokens = context.format.overheads.request;
  for (let index = 0; index < messages.length; index++) tokens += countOne(messages[index], index, context);
  return tokens;
}

/** Counts one message without the frame of the request. `countMessages` is the sum of these and that frame. */
export function countMessage(message: object, counter: Counter, options: CountOptions = {}): number {
  return countOne(message, undefined, createCountContext([message], counter, options));
}

/** Counts a system prompt outside the messages, as a text or a list of blocks. Returns 0 if it is empty. */
export function countSystem(system: unknown, counter: Counter): number {
  if (system === undefined || system === null || system === "") return 0;
  textOrListAt(system, "system");
  return countMessage({ role: "system", content: system }, counter, { format: "anthropic" });
}

function countOne(message: unknown, index: number | undefined, context: CountContext): number {
  const { format, tier, cache } = context;
  const known = cache.messages.get(message as object);
  if (known?.format === format && known.tier === tier && known.isUnchanged(message)) {
    return known.tokens;
  }
  const path = index === undefined ? "message" : `messages[${index}]`;
  const fields = fieldsAt(message, path);
  const reading = format.read(fields, path);
  const missesBefore = cache.misses;
  let tokens = frameTokens(reading, format.overheads);
  for (const part of reading.parts) tokens += countPart(part, context);
  if (cache.misses > missesBefore) {
    cache.messages.set(fields, { format, tier, isUnchanged: takeSnapshot(fields), tokens });
  }
  return tokens;
}

/**
 * Counts the tokens of tool definitions and of the system prompt that the provider adds for them. Without a `format`
 * the definitions are read as Anthropic's. A definition that was edited in place is counted again. Returns 0 for an
 * empty list.
 *
 * @example
 * ```ts
 * import { countTools } from "plimsoll/messages";
 * import { createCounter } from "plimsoll/tokens";
 *
 * const counter = await createCounter("auto", { model: "claude-sonnet-5" });
 * const tools = [{ name: "read_file", description: "Reads a file.", input_schema: { type: "object" } }];
 * console.log(countTools(tools, counter, { model: "claude-sonnet-5" }));
 * ```
 */
export function countTools(
  tools: readonly object[],
  counter: Counter,
  options: CountOptions & {
    /** The `type` of the request's `tool_choice`.
     * @default "auto" */
    readonly toolChoice?: ToolChoice | undefined;
  } = {},
): number {
  if (!Array.isArray(tools)) return failAt("tools", `must be an array, not ${typeName(tools)}`);
  if (tools.length === 0) return 0;
  const format = chooseFormat([], options.format);
  const { toolChoice = "auto" } = options;
  const toolChoices: readonly ToolChoice[] = ["auto", "any", "tool", "none"];
  if (!toolChoices.includes(toolChoice)) {
    throw new ContextError("invalid_argument", `unknown tool choice ${JSON.stringify(toolChoice)}`, {
      hint: `Tool choices are ${toolChoices.join(", ")}.`,
    });
  }
  let tokens = format.toolPromptTokens(options.model, toolChoice);
  for (const [index, tool] of tools.entries()) tokens += countTool(tool, `tools[${index}]`, { format, counter });
  return tokens;
}

function countTool(tool: unknown, path: string, context: { format: MessageFormat; counter: Counter }): number {
  const { format, counter } = context;
  const cache = getCache(counter);
  const fields = fieldsAt(tool, path);
  const known = cache.tools.get(fields);
  if (known?.format === format && known.isUnchanged(fields)) return known.tokens;
  const { text, fixedTokens } = format.readTool(fields, path);
  const { tool: frame, toolFactor } = format.overheads;
  const tokens = Math.ceil(cache.texts.count(text) * toolFactor) + fixedTokens + frame;
  cache.tools.set(fields, { format, isUnchanged: takeSnapshot(fields), tokens });
  return tokens;
}
