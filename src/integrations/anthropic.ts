/** The import path `plimsoll/anthropic`. */
import { priceOf } from "../billing/index.ts";
import {
  createRecallTool,
  optionChecks,
  type RecallDefinition,
  type RecallSource,
  type RecallTool,
} from "../history/index.ts";
import type { Fields } from "../text/index.ts";
import { recallOriginal } from "./conversation-intake.ts";
import {
  anthropicMarkers,
  type BreakpointMode,
  breakpointModes,
  lifetimesOf,
  modeFor,
  placeMarkers,
} from "./place-markers.ts";
import {
  checkBudgetOptions,
  createRequestFitter,
  type RequestFitter,
  type RequestFitterOptions,
  replaceFields,
  type TrimEvent,
} from "./request-fitter.ts";
import { type Client, type PreparedBody, wrapClient } from "./wrap-client.ts";

export type { BreakpointMode, RecallSource, RecallTool, TrimEvent };

/** The body of a request, as the caller passed it. */
export type AnthropicRequest = Fields;

/** The settings of `withContextBudget` for Anthropic's client: those of a trimmer, and when to add cache markers. */
export interface AnthropicOptions extends RequestFitterOptions<AnthropicRequest> {
  /** When to add cache markers in slots that the request leaves free: `follow` only if the request has some, `auto`
   *  always, `none` never.
   * @default "auto" for a model of Anthropic, "follow" for any other */
  readonly breakpoints?: BreakpointMode | undefined;
}

/**
 * Wraps a client of `@anthropic-ai/sdk` so that every request fits the model's window. It covers `messages.create`,
 * `messages.parse`, `messages.stream`, tool runners and their beta counterparts; the rest of the client is unchanged. A
 * tool runner sends its whole history with each request, because a history that the API holds cannot be trimmed here. A
 * thread that you start yourself (`beta.messages.thread`) is sent as it is.
 *
 * @example
 * ```ts
 * import Anthropic from "@anthropic-ai/sdk";
 * import { withContextBudget } from "plimsoll/anthropic";
 *
 * const client = withContextBudget(new Anthropic({ apiKey: "your key" }), {
 *   contextWindow: 200_000,
 *   onTrim: ({ stats }) => console.error(`trimmed ${stats.before} to ${stats.after} tokens`),
 * });
 * ```
 */
export function withContextBudget<Wrapped extends Client>(client: Wrapped, options: AnthropicOptions = {}): Wrapped {
  checkBudgetOptions(options, { breakpoints: optionChecks.oneOf(breakpointModes) });
  const { breakpoints: mode, ...rest } = options;
  const budget = createRequestFitter(rest);
  const routes = {
    "/v1/messages": (body: Fields) => prepareAnthropic(body, budget, mode),
  };
  // SDKs without threads would send this setting to the API.
  const hasThreads = Reflect.get(client, "_supportsMessageThreads") === true;
  return wrapClient(client, routes, hasThreads ? { toolRunner: withoutThread } : {});
}

function withoutThread(params: Fields): Fields {
  return { ...params, thread: params.thread ?? false };
}

/** Makes a request of the Messages API fit, and marks it for the cache. Returns undefined if the API holds the
 *  conversation, in a thread. */
export function prepareAnthropic(
  body: Fields,
  budget: RequestFitter<AnthropicRequest>,
  mode: BreakpointMode | undefined,
): Promise<PreparedBody> | undefined {
  return (body.thread ?? null) === null ? fitMessages(body, budget, mode) : undefined;
}

async function fitMessages(
  body: Fields,
  budget: RequestFitter<AnthropicRequest>,
  mode: BreakpointMode | undefined,
): Promise<PreparedBody> {
  const model = typeof body.model === "string" ? body.model : undefined;
  const { reduction, observe } = await budget.fit({
    request: body,
    format: "anthropic",
    model,
    messages: body.messages as readonly object[],
    system: body.system,
    tools: (body.tools ?? []) as readonly object[],
    maxOutputTokens: typeof body.max_tokens === "number" ? body.max_tokens : undefined,
    cacheLifetimeMs: cacheLifetimeMs(body, model),
  });
  const { messages, breakpoints } = reduction;
  const { tools, system, cache_control: automatic } = body;
  const own = body.messages as readonly object[];
  const placed = placeMarkers({ mode: modeFor(mode, model), own, automatic, tools, system, messages, breakpoints });
  return { body: replaceFields(body, { ...placed }), observe };
}

function cacheLifetimeMs(body: Fields, model: string | undefined): number {
  const { tools, system, messages, cache_control: automatic } = body;
  const markers = [...anthropicMarkers.markersOf([tools, system, messages]), ...lifetimesOf(automatic)];
  const { lifetimeMs } = priceOf({ provider: "anthropic", model }).rules;
  return lifetimeMs[markers.includes("1h") ? "1h" : "5m"];
}

/**
 * Creates a tool with which the model reads what was trimmed. It adds nothing to requests by itself: put `definition`
 * into the list of tools, answer calls with `handle`, and add `instructions` to the system text.
 *
 * @example
 * ```ts
 * import Anthropic from "@anthropic-ai/sdk";
 * import { recallTool, withContextBudget } from "plimsoll/anthropic";
 * import { createMemoryStore } from "plimsoll/store";
 *
 * const source = { store: createMemoryStore(), sessionId: "build-7" };
 * const client = withContextBudget(new Anthropic({ apiKey: "your key" }), source);
 * const recall = recallTool(source);
 * const answer = await client.messages.create({
 *   model: "claude-sonnet-5",
 *   max_tokens: 1_000,
 *   system: `You look for bugs. ${recall.instructions}`,
 *   tools: [recall.definition],
 *   messages: [{ role: "user", content: "Where is the bug?" }],
 * });
 * for (const block of answer.content) if (block.type === "tool_use") console.log(await recall.handle(block.input));
 * ```
 */
export function recallTool(source: RecallSource): RecallTool<AnthropicRecallDefinition> {
  const { definition, ...tool } = createRecallTool(source, (id) => recallOriginal(source, id));
  const { inputSchema: input_schema, ...named } = definition;
  return { ...tool, definition: { ...named, input_schema } };
}

type AnthropicRecallDefinition = Omit<RecallDefinition, "inputSchema"> & {
  readonly input_schema: RecallDefinition["inputSchema"];
};
