/** A provider's own request as blocks and breakpoints: tools, then system, then messages, as the cache sees them. */
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
import type { Counter } from "../tokens/index.ts";
import type { BillableBlock } from "./cache/prefix-chain.ts";
import type { BillableRequest } from "./cache-simulator.ts";
import { providerOfModel } from "./prices.ts";
import { anthropicBreakpoints, openaiBreakpoints } from "./request-breakpoints.ts";

export interface BillableRequestOptions {
  readonly counter: Counter;
  /** Absent: told by the request's fields, its model and its messages. */
  readonly format?: FormatName | undefined;
  /** Absent: the request's own. */
  readonly model?: string | undefined;
  readonly sealed?: SealedCounting | undefined;
}

/** Blocks and breakpoints of an Anthropic request or an OpenAI chat or responses request. Its blocks add up to what `countMessages` and
 *  `countTools` say, and have equal keys for equal content, wherever the markers are. */
export function billableRequest(request: object, options: BillableRequestOptions): BillableRequest {
  const fields = Object(request) as Fields;
  const model = options.model ?? textOf(fields.model);
  const messages = messagesOf(fields);
  const format = options.format ?? formatOf(fields, model);
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
  // A change of these spoils what is cached of the messages, not of tools and system (Anthropic, Prompt caching, 2026-11).
  if (isAnthropic) list.salt([fields.tool_choice, fields.thinking, fields.output_config]);
  for (const [index, message] of messages.entries()) list.addMessage(lens.read(message, index));
  return {
    blocks: list.blocks,
    breakpoints: (isAnthropic ? anthropicBreakpoints : openaiBreakpoints)(fields, list.values),
  };
}

type Fields = Readonly<Record<string, unknown>>;

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function messagesOf({ messages, input }: Fields): readonly object[] {
  const found = messages ?? (typeof input === "string" ? [{ role: "user", content: input }] : input);
  if (Array.isArray(found)) return found;
  throw new ContextError("invalid_message", "the request has neither a list of messages nor an input");
}

/** Plain texts fit every format: there the model tells whose request it is. */
function formatOf(fields: Fields, model: string | undefined): FormatName | undefined {
  if (fields.messages === undefined) return "responses";
  return model !== undefined && providerOfModel(model) === "openai" ? "openai" : undefined;
}

interface BlockList {
  readonly blocks: readonly BillableBlock[];
  /** What each block was made of, where a marker may sit. */
  readonly values: readonly unknown[];
  /** Something beside the content that the cache's key depends on from here on. */
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
      const key = hashMessage({ role, part: contentOf(value), salts });
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

/** What is hashed: a plain text like the block that clients make of it to put a marker on. */
function contentOf(value: unknown): unknown {
  return typeof value === "string" ? { type: "text", text: value } : value;
}

/** The provider's own prompt for tools comes with the first one. */
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
  // All of them first: a malformed one is named by its own path.
  count(tools);
  for (const [index, tool] of tools.entries()) {
    const tokens = index === 0 ? count([tool]) : count([tools[0], tool]) - count([tools[0]]);
    list.add({ role: "tools", value: tool, tokens, kind: "prefix" });
  }
}

/** Without the frame of a message, which a system prompt of its own has not. */
function addSystem(list: BlockList, system: unknown, lens: MessageLens): void {
  if (system === undefined || system === null) return;
  for (const { value, tokens } of readSystem(system, lens)) {
    list.add({ role: "system", value, tokens, kind: "prefix" });
  }
}

function readSystem(system: unknown, lens: MessageLens): CountedMessage["parts"] {
  try {
    return lens.read({ role: "system", content: system }, -1).parts;
  } catch (cause) {
    if (!(cause instanceof ContextError)) throw cause;
    const message = cause.message.replace("messages[-1].content", "system");
    throw new ContextError(cause.code, message, { hint: cause.hint, cause });
  }
}
