/** The import path `plimsoll/anthropic`. */

import type { Fields } from "../../core/text/index.ts";
import { createRecallTool, type RecallDefinition, type RecallSource, type RecallTool } from "../history/index.ts";
import type { CallEvent, CallSummary, WithSummary } from "./call-events.ts";
import {
  addedMarkers,
  anthropicMarkers,
  type BreakpointMode,
  cachePlan,
  type MarkerOptions,
  type MessageMarkers,
  markerChecks,
  modeFor,
  placeMarkers,
  readLifetime,
  readMessageMarkers,
} from "./place-markers.ts";
import { recallOriginal } from "./recall-original.ts";
import {
  type BudgetCall,
  checkBudgetOptions,
  createRequestFitter,
  type RequestFitter,
  type RequestFitterOptions,
  replaceFields,
  type TrimEvent,
} from "./request-fitter.ts";
import { prepareFitted } from "./second-try.ts";
import { type Client, type PreparedBody, wrapClient } from "./wrap-client.ts";

export type { CallEvent, CallSummary, RecallTool, TrimEvent };

/** The parameters of `messages.create` of a client, in the types of its SDK. */
export type AnthropicRequest<Wrapped> = Wrapped extends {
  readonly messages: { create(body: infer Body, ...rest: never[]): unknown };
}
  ? Body
  : Fields;

/** The settings of `withContextBudget` for Anthropic's client: those of a trimmer, and how to mark the cache. */
export interface AnthropicOptions<
  // biome-ignore lint/suspicious/noExplicitAny: options on their own fit the client of every SDK
  Request = any,
> extends RequestFitterOptions<Request> {
  /** When to add cache markers in slots that the request leaves free: `follow` only if the request has some, `auto`
   *  always, `none` never.
   * @default "auto" for a model of Anthropic, "follow" for any other */
  readonly breakpoints?: BreakpointMode | undefined;
  /** How long the cache keeps what the added markers write: 5 minutes, an hour, or `auto`, which chooses at each call
   *  from the pauses of the conversation and the prices of the model. Your own markers keep their lifetime, and decide
   *  that of the added ones.
   * @default "auto" for a model under Anthropic's own name, "5m" for any other */
  readonly ttl?: "auto" | "5m" | "1h" | undefined;
}

/**
 * Wraps a client of `@anthropic-ai/sdk` so that every request fits the model's window. It covers `messages.create`,
 * `messages.parse`, `messages.stream`, tool runners and their beta counterparts; the rest of the client is unchanged.
 * `messages.countTokens` counts the request as it would be sent, and `client.plimsoll.summary()` adds up all calls. A tool
 * runner sends its whole history with each request, because a history that the API holds cannot be trimmed here. A
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
export function withContextBudget<Wrapped extends Client>(
  client: Wrapped,
  options: AnthropicOptions<AnthropicRequest<Wrapped>> = {},
): Wrapped & WithSummary {
  checkBudgetOptions(options, markerChecks);
  const { breakpoints, ttl, ...rest } = options as AnthropicOptions;
  const budget = createRequestFitter(rest, "anthropic");
  const routes = {
    "/v1/messages": (body: Fields) => prepareAnthropic(body, budget, { breakpoints, ttl }),
    "/v1/messages/count_tokens": (body: Fields) => prepareCount(body, budget, { breakpoints, ttl }),
  };
  // SDKs without threads would send this setting to the API.
  const hasThreads = Reflect.get(client, "_supportsMessageThreads") === true;
  const toolRunner = (params: Fields): Fields => ({ ...params, thread: params.thread ?? false });
  const added = { plimsoll: { summary: budget.calls.summary } };
  return wrapClient(client, { routes, added, methods: hasThreads ? { toolRunner } : {} });
}

/** Makes a request of the Messages API fit, and marks it for the cache. Returns undefined if the API holds the
 *  conversation, in a thread. */
export async function prepareAnthropic(
  body: Fields,
  budget: RequestFitter<Fields>,
  options: MarkerOptions,
): Promise<PreparedBody | undefined> {
  if ((body.thread ?? null) !== null) return undefined;
  const { call, ownMarkers } = readCall(body, options);
  const fitted = await budget.fit(call);
  const { tools, system, cache_control: automatic } = body;
  const own = body.messages as readonly object[];
  const mode = modeFor(options.breakpoints, call.model);
  return prepareFitted(fitted, ({ messages, breakpoints }, { lifetime }) => {
    const added = addedMarkers(options, lifetime);
    const placed = placeMarkers({ mode, own, ownMarkers, automatic, tools, system, messages, breakpoints, ...added });
    return replaceFields(body, { ...placed });
  });
}

/** Trims a request that is only counted as if it were sent. Returns undefined if the API holds the conversation. */
export async function prepareCount(
  body: Fields,
  budget: RequestFitter<Fields>,
  options: MarkerOptions,
): Promise<PreparedBody | undefined> {
  if ((body.thread ?? null) !== null) return undefined;
  const { messages } = await budget.preview(readCall(body, options).call);
  const sent = replaceFields(body, { messages });
  return { body: sent, observe: () => undefined, refused: async () => undefined };
}

function readCall(
  body: Fields,
  options: MarkerOptions,
): { readonly call: BudgetCall<Fields>; readonly ownMarkers: MessageMarkers } {
  const { tools, system, messages, cache_control: automatic } = body;
  const model = typeof body.model === "string" ? body.model : undefined;
  const first = anthropicMarkers.readMarkers([tools, system]);
  const ownMarkers = readMessageMarkers(messages as readonly object[], anthropicMarkers);
  const later = [...[...ownMarkers.values()].flat(), ...readLifetime(automatic)];
  const asked = [...first, ...later];
  const call: BudgetCall<Fields> = {
    request: body,
    format: "anthropic",
    model,
    messages: messages as readonly object[],
    system,
    tools: tools as readonly object[] | undefined,
    maxOutputTokens: typeof body.max_tokens === "number" ? body.max_tokens : undefined,
    ...cachePlan(options, model, asked),
    ownMarkers: { prefix: first.length > 0, end: later.length > 0, ttl: asked.includes("1h") ? "1h" : "5m" },
  };
  return { call, ownMarkers };
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
export function recallTool(
  source: RecallSource,
): RecallTool<Omit<RecallDefinition, "inputSchema"> & { readonly input_schema: RecallDefinition["inputSchema"] }> {
  const { definition, ...tool } = createRecallTool(source, (id) => recallOriginal(source, id));
  const { inputSchema: input_schema, ...rest } = definition;
  return { ...tool, definition: { ...rest, input_schema } };
}
