/** Splits a provider's own request into blocks and breakpoints in the order of the cache: tools, system, messages. */

import { ContextError } from "../errors.ts";
import {
  type CountedMessage,
  countTools,
  createMessageLens,
  type FormatName,
  hashMessage,
  type MessageLens,
  type SealedCounting,
} from "../messages/index.ts";
import type { Fields } from "../text/index.ts";
import type { Counter } from "../tokens/index.ts";
import type { BillableRequest, Breakpoint } from "./cache-simulator.ts";
import type { BillableBlock } from "./prefix-chain.ts";
import { providerOfModel, type Ttl } from "./prices.ts";

/**
 * Returns the blocks and cache breakpoints of an Anthropic request or of an OpenAI chat or responses request. The
 * tokens of the blocks add up to what `countMessages` and `countTools` return. Equal content has equal keys in one process,
 * wherever the markers are.
 *
 * @example
 * ```ts
 * import { billableRequest, createCacheSimulator } from "plimsoll/billing";
 * import { createCounter } from "plimsoll/tokens";
 *
 * const counter = await createCounter("estimate:claude-5");
 * const simulator = createCacheSimulator({ provider: "anthropic", model: "claude-sonnet-5" });
 * const request = { model: "claude-sonnet-5", messages: [{ role: "user", content: "Hello" }] };
 * console.log(simulator.bill(billableRequest(request, { counter })).total);
 * ```
 */
export function billableRequest(
  request: object,
  options: {
    /** Counts the tokens of each block. */
    readonly counter: Counter;
    /** The shape of the messages. By default it is detected from the request's fields, model and messages. */
    readonly format?: FormatName | undefined;
    /** The model's id.
     * @default the request's `model` */
    readonly model?: string | undefined;
    /** How to count encrypted thinking: as the provider bills it, or only its readable text.
     * @default "billed" */
    readonly sealed?: SealedCounting | undefined;
  },
): BillableRequest {
  const fields = Object(request) as Fields;
  const model = options.model ?? (typeof fields.model === "string" ? fields.model : undefined);
  const { input } = fields;
  const messages = fields.messages ?? (typeof input === "string" ? [{ role: "user", content: input }] : input);
  if (!Array.isArray(messages)) {
    throw new ContextError("invalid_message", "the request has neither a list of messages nor an input");
  }
  // Plain text fits every format. The model then shows whose request it is.
  const shown = model !== undefined && providerOfModel(model) === "openai" ? "openai" : undefined;
  const format = options.format ?? (fields.messages === undefined ? "responses" : shown);
  const lens = createMessageLens(messages, { ...options, model, format });
  if (lens.format !== "anthropic" && lens.format !== "openai" && lens.format !== "responses") {
    throw new ContextError("invalid_argument", `no provider bills a request in the format ${lens.format}`, {
      hint: "Pass the request that goes out: Anthropic messages, OpenAI chat or responses.",
    });
  }
  const isAnthropic = lens.format === "anthropic";
  const list = createBlockList(lens.requestTokens);
  list.salt(model);
  addTools(list, fields, { counter: options.counter, format: lens.format, model });
  list.salt(fields.speed);
  addSystem(list, fields.system ?? fields.instructions, lens);
  // Changing these invalidates the cached messages, but not tools and system (Anthropic, Prompt caching, 2026-11).
  if (isAnthropic) list.salt([fields.tool_choice, fields.thinking, fields.output_config]);
  for (const [index, message] of messages.entries()) list.addMessage(lens.read(message, index));
  return {
    blocks: list.blocks,
    breakpoints: (isAnthropic ? anthropicBreakpoints : openaiBreakpoints)(fields, list.values),
  };
}

interface BlockList {
  readonly blocks: readonly BillableBlock[];
  /** The value of each block, which may carry a marker. */
  readonly values: readonly unknown[];
  /** Adds something other than content that the cache's key depends on from here on. */
  salt(value: unknown): void;
  add(block: { role: string; value: unknown; tokens: number; kind: BillableBlock["kind"] }): void;
  addMessage(message: CountedMessage): void;
}

function createBlockList(requestTokens: number): BlockList {
  const blocks: BillableBlock[] = [];
  const values: unknown[] = [];
  let salts: unknown[] = [];
  const list: BlockList = {
    blocks,
    values,
    salt: (value) => void salts.push(value ?? null),
    add({ role, value, tokens, kind }) {
      // Clients turn a plain text into a block to mark it, so both must hash alike.
      const part = typeof value === "string" ? { type: "text", text: value } : value;
      const key = hashMessage({ role, part, salts });
      salts = [];
      blocks.push({ key, kind, tokens: tokens + (blocks.length === 0 ? requestTokens : 0) });
      values.push(value);
    },
    addMessage({ role, parts, tokens }) {
      let frame = parts.reduce((rest, part) => rest - part.tokens, tokens);
      for (const { value, kind, ...part } of parts) {
        list.add({ role, value, kind, tokens: part.tokens + frame });
        frame = 0;
      }
      if (frame > 0) list.add({ role, value: undefined, kind: "other", tokens: frame });
    },
  };
  return list;
}

/** The provider's own prompt for tools counts with the first tool. */
function addTools(
  list: BlockList,
  { tools, tool_choice: choice }: Fields,
  context: { counter: Counter; format: FormatName; model: string | undefined },
): void {
  if (!Array.isArray(tools)) return;
  const { type } = Object(choice);
  const toolChoice = type === "any" || type === "tool" || type === "none" ? type : "auto";
  const count = (some: readonly object[]): number =>
    countTools(some, context.counter, { format: context.format, model: context.model, toolChoice });
  // Count all tools first, so that an error names the malformed one by its path.
  count(tools);
  for (const [index, tool] of tools.entries()) {
    const tokens = index === 0 ? count([tool]) : count([tools[0], tool]) - count([tools[0]]);
    list.add({ role: "tools", value: tool, tokens, kind: "prefix" });
  }
}

/** Adds the system prompt without the frame of a message, because it has none. */
function addSystem(list: BlockList, system: unknown, lens: MessageLens): void {
  if (system === undefined || system === null) return;
  let parts: CountedMessage["parts"];
  try {
    parts = lens.read({ role: "system", content: system }, -1).parts;
  } catch (cause) {
    if (!(cause instanceof ContextError)) throw cause;
    const message = cause.message.replace("messages[-1].content", "system");
    throw new ContextError(cause.code, message, { hint: cause.hint, cause });
  }
  for (const { value, tokens } of parts) list.add({ role: "system", value, tokens, kind: "prefix" });
}

// Where a request's markers are. `values` are the blocks' own objects, in the order of the cache.

/** Returns the markers on blocks; a marker inside a result counts for the result. `cache_control` on the request itself
 *  marks the last block that can carry a marker (Anthropic, Prompt caching, 2026-11). */
function anthropicBreakpoints(request: Fields, values: readonly unknown[]): readonly Breakpoint[] {
  const breakpoints = values.flatMap((value, after): Breakpoint[] => {
    if (!isCacheable(value)) return [];
    const ttl =
      readTtl(value) ??
      innerBlocks(value)
        .map(readTtl)
        .findLast((each) => each !== undefined);
    return ttl === undefined ? [] : [{ after, ttl }];
  });
  const ttl = readTtl(request);
  const after = ttl === undefined ? -1 : values.findLastIndex(isCacheable);
  return ttl === undefined || after < 0 ? breakpoints : [...breakpoints, { after, ttl }];
}

/** Returns an automatic breakpoint at the end and the latest three of the request's own, or its latest four alone with
 *  `mode: explicit`. Models before GPT-5.6 do not use breakpoints. */
function openaiBreakpoints(request: Fields, values: readonly unknown[]): readonly Breakpoint[] {
  const { mode, ttl: lifetime } = Object(request.prompt_cache_options) as Fields;
  const ttl: Ttl = lifetime === "12h" ? "1h" : "5m";
  const marked = values.flatMap((value, after) => {
    const blocks = [value, ...innerBlocks(value)];
    return blocks.some((block) => (Object(block).prompt_cache_breakpoint ?? null) !== null) ? [{ after, ttl }] : [];
  });
  if (mode === "explicit") return marked.slice(-4);
  return values.length === 0 ? [] : [...marked.slice(-3), { after: values.length - 1, ttl }];
}

/** Returns the blocks that a result has itself: as `content` in Anthropic and chat requests, as `output` in responses. */
function innerBlocks(value: unknown): readonly unknown[] {
  const { content, output } = Object(value) as Fields;
  return [content, output].find(Array.isArray) ?? [];
}

function readTtl(value: unknown): Ttl | undefined {
  const marker = Object(value).cache_control;
  if (typeof marker !== "object" || marker === null) return undefined;
  return Object(marker).ttl === "1h" ? "1h" : "5m";
}

/** The API does not accept a marker on thinking or on empty text. */
function isCacheable(value: unknown): boolean {
  if (typeof value === "string") return value !== "";
  const { type, text } = Object(value) as Fields;
  return type !== "thinking" && type !== "redacted_thinking" && !(type === "text" && text === "");
}
