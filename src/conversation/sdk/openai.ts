/** The import path `plimsoll/openai`. */
import { priceOf } from "../../core/billing/index.ts";
import type { Fields } from "../../core/text/index.ts";
import { createRecallTool, type RecallDefinition, type RecallSource, type RecallTool } from "../history/index.ts";
import type { CallEvent, CallSummary, WithSummary } from "./call-events.ts";
import type { RefusingHosts } from "./learned.ts";
import { recallOriginal } from "./recall-original.ts";
import {
  type BudgetCall,
  createRequestFitter,
  type RequestFitter,
  type RequestFitterOptions,
  replaceFields,
  type TrimEvent,
} from "./request-fitter.ts";
import { prepareFitted } from "./second-try.ts";
import { type Client, type Destination, type PreparedBody, wrapClient } from "./wrap-client.ts";

export type { CallEvent, CallSummary, RecallTool, TrimEvent };

/** The parameters of `chat.completions.create` and `responses.create` of a client, in the types of its SDK. */
export type OpenAiRequest<Wrapped> = Wrapped extends {
  readonly chat: { readonly completions: { create(body: infer Chat, ...rest: never[]): unknown } };
  readonly responses: { create(body: infer Response, ...rest: never[]): unknown };
}
  ? Chat | Response
  : Fields;
/** The settings of `withContextBudget` for OpenAI's client: those of a trimmer, with defaults for each model. */
export type OpenAiOptions<
  // biome-ignore lint/suspicious/noExplicitAny: options on their own fit the client of every SDK
  Request = any,
> = RequestFitterOptions<Request>;

/**
 * Wraps a client of `openai` so that every request fits the model's window. It covers `chat.completions` and
 * `responses`: create, parse, stream and tool runners. The rest of the client is unchanged. A conversation that the API
 * holds (`previous_response_id`, `conversation`) is sent as it is. `client.plimsoll.summary()` adds up all calls.
 *
 * @example
 * ```ts
 * import OpenAI from "openai";
 * import { withContextBudget } from "plimsoll/openai";
 *
 * const client = withContextBudget(new OpenAI({ apiKey: "your key" }), { contextWindow: 400_000 });
 * ```
 */
export function withContextBudget<Wrapped extends Client>(
  client: Wrapped,
  options: OpenAiOptions<OpenAiRequest<Wrapped>> = {},
): Wrapped & WithSummary {
  const budget = createRequestFitter(options as OpenAiOptions, "openai");
  const routes = {
    "/chat/completions": (body: Fields, to: Destination) => prepareChat(body, budget, to),
    "/responses": (body: Fields) => prepareResponse(body, budget),
  };
  return wrapClient(client, { routes, added: { plimsoll: { summary: budget.calls.summary } } });
}

/** Makes a request to chat completions fit. A stream is asked for its usage. */
export async function prepareChat(
  body: Fields,
  budget: RequestFitter<Fields>,
  // Undefined if the caller reads the usage itself.
  destination: Destination | undefined,
): Promise<PreparedBody> {
  const fitted = await budget.fit({
    ...readFields(body),
    format: "openai",
    messages: body.messages as readonly object[],
    maxOutputTokens: readNumber(body.max_completion_tokens ?? body.max_tokens),
  });
  const prepared = prepareFitted(fitted, ({ messages }) => replaceFields(body, { messages }));
  // A caller who sets `include_usage` gets what was asked for.
  const isAskable = body.stream === true && (Object(body.stream_options) as Fields).include_usage === undefined;
  if (destination === undefined || !isAskable) return prepared;
  return askForUsage(prepared, { host: destination.host, hosts: fitted.hosts });
}

/** `hosts` are those that refuse `stream_options`. */
function askForUsage(
  prepared: PreparedBody,
  at: { readonly host: string; readonly hosts: RefusingHosts },
): PreparedBody {
  const { host, hosts } = at;
  if (hosts.has(host)) return prepared;
  const stream_options = { ...Object(prepared.body.stream_options), include_usage: true };
  return {
    ...prepared,
    body: { ...prepared.body, stream_options },
    hidesUsage: true,
    async refused(refusal) {
      if (refusal.kind === "stream_options") {
        await hosts.add(host);
        return prepared;
      }
      const again = await prepared.refused(refusal);
      return again && askForUsage(again, at);
    },
  };
}

/** Makes a request to the responses API fit. Returns undefined if the API holds the conversation. */
export async function prepareResponse(body: Fields, budget: RequestFitter<Fields>): Promise<PreparedBody | undefined> {
  const { input } = body;
  if ((body.previous_response_id ?? body.conversation ?? null) !== null || (input ?? null) === null) return undefined;
  // A plain text is one user message. It cannot be trimmed, but it may be too large.
  const isText = typeof input === "string";
  const fitted = await budget.fit({
    ...readFields(body),
    format: "responses",
    messages: isText ? [{ role: "user", content: input }] : (input as readonly object[]),
    system: body.instructions,
    maxOutputTokens: readNumber(body.max_output_tokens),
  });
  return prepareFitted(fitted, ({ messages }) => (isText ? body : replaceFields(body, { input: messages })));
}

function readFields(
  body: Fields,
): Pick<BudgetCall<Fields>, "request" | "model" | "tools" | "cacheLifetimeMs" | "ownMarkers"> {
  const model = typeof body.model === "string" ? body.model : undefined;
  const { ttl: asked } = Object(body.prompt_cache_options) as Fields;
  const isLongLived = body.prompt_cache_retention === "24h" || (asked !== undefined && asked !== "30m");
  const ttl = isLongLived ? "1h" : "5m";
  return {
    request: body,
    model,
    tools: (body.tools ?? []) as readonly object[],
    cacheLifetimeMs: priceOf({ provider: "openai", model }).rules.lifetimeMs[ttl],
    // OpenAI marks the end of every request by itself.
    ownMarkers: { prefix: false, end: true, ttl },
  };
}

function readNumber(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/**
 * Creates a tool with which the model reads what was trimmed. It adds nothing to requests by itself: put `definition`
 * into the list of tools, answer calls with `handle`, and add `instructions` to the system text.
 *
 * @example
 * ```ts
 * import { recallTool } from "plimsoll/openai";
 * import { createMemoryStore } from "plimsoll/store";
 *
 * const source = { store: createMemoryStore(), sessionId: "build-7" };
 * const { definition, handle } = recallTool(source);
 * const inResponses = { type: "function" as const, strict: false, ...definition.function };
 * console.log(inResponses.name, await handle('{"grep":"error"}'));
 * ```
 */
export function recallTool(source: RecallSource): RecallTool<{
  readonly type: "function";
  readonly function: Omit<RecallDefinition, "inputSchema"> & { readonly parameters: Record<string, unknown> };
}> {
  const { definition, ...tool } = createRecallTool(source, (id) => recallOriginal(source, id));
  const { inputSchema: parameters, ...rest } = definition;
  return { ...tool, definition: { type: "function", function: { ...rest, parameters: { ...parameters } } } };
}
