/** Door of `plimsoll/anthropic`: a client of @anthropic-ai/sdk whose requests fit the model's window. */
import { priceOf } from "../billing/index.ts";
import { checkBudgetOptions, oneOf } from "./budget/check-options.ts";
import {
  type ContextBudget,
  type ContextBudgetOptions,
  createContextBudget,
  type TrimEvent,
} from "./budget/context-budget.ts";
import { markersOf } from "./client/markers.ts";
import { type BreakpointMode, breakpointModes, placeMarkers } from "./client/place-markers.ts";
import { type Client, type Fields, type PreparedBody, wrapClient } from "./client/wrap-client.ts";
import { replaceFields } from "./replace-fields.ts";

export type { BreakpointMode, TrimEvent };

/** The body of a request as the caller passed it. */
export type AnthropicRequest = Fields;

export interface AnthropicOptions extends ContextBudgetOptions<AnthropicRequest> {
  /** Whether cache markers are placed in slots that the request leaves: `follow` (default) where it uses caching itself, `auto` always,
   *  `none` never. */
  breakpoints?: BreakpointMode | undefined;
}

/** The client with `messages.create`, `messages.parse`, `messages.stream`, tool runners and their beta counterparts kept within the
 *  window; all else is the client's own. A tool runner sends its whole history with each request, since one that the API holds cannot be
 *  trimmed here. A thread that the caller starts (`beta.messages.thread`) passes as it is. */
export function withContextBudget<Wrapped extends Client>(
  client: Wrapped,
  options: AnthropicOptions = {},
): Wrapped {
  checkBudgetOptions(options, { breakpoints: oneOf(breakpointModes) });
  const { breakpoints: mode = "follow", ...rest } = options;
  const budget = createContextBudget(rest);
  const routes = {
    "/v1/messages": (body: Fields) =>
      (body.thread ?? null) === null ? prepare(body, budget, mode) : undefined,
  };
  // Only an SDK with threads takes this for a setting, and no part of the request.
  const hasThreads = Reflect.get(client, "_supportsMessageThreads") === true;
  return wrapClient(client, routes, hasThreads ? { toolRunner: withoutThread } : {});
}

function withoutThread(params: Fields): Fields {
  return { ...params, thread: params.thread ?? false };
}

async function prepare(
  body: Fields,
  budget: ContextBudget<AnthropicRequest>,
  mode: BreakpointMode,
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
  const parts = placeMarkers({ mode, request: body, messages, breakpoints });
  return { body: replaceFields(body, { ...parts }), observe };
}

function cacheLifetimeMs(body: Fields, model: string | undefined): number {
  const markers = markersOf([body.tools, body.system, body.messages, { cache_control: body.cache_control }]);
  const { lifetimeMs } = priceOf({ provider: "anthropic", model }).rules;
  return lifetimeMs[markers.includes("1h") ? "1h" : "5m"];
}
