/** The import path `plimsoll/openai`. */
import { priceOf } from "../billing/index.ts";
import { createRecallTool, type RecallDefinition, type RecallSource, type RecallTool } from "../history/index.ts";
import type { Fields } from "../text/index.ts";
import { recallOriginal } from "./conversation-intake.ts";
import {
  type BudgetCall,
  createRequestFitter,
  type RequestFitter,
  type RequestFitterOptions,
  replaceFields,
  type TrimEvent,
} from "./request-fitter.ts";
import { type Client, type PreparedBody, wrapClient } from "./wrap-client.ts";

export type { RecallSource, RecallTool, TrimEvent };

/** The body of a request, as the caller passed it. */
export type OpenAiRequest = Fields;
/** The settings of `withContextBudget` for OpenAI's client: those of a trimmer, with defaults for each model. */
export type OpenAiOptions = RequestFitterOptions<OpenAiRequest>;

/**
 * Wraps a client of `openai` so that every request fits the model's window. It covers `chat.completions` and
 * `responses`: create, parse, stream and tool runners. The rest of the client is unchanged. A conversation that the API
 * holds (`previous_response_id`, `conversation`) is sent as it is.
 *
 * @example
 * ```ts
 * import OpenAI from "openai";
 * import { withContextBudget } from "plimsoll/openai";
 *
 * const client = withContextBudget(new OpenAI({ apiKey: "your key" }), { contextWindow: 400_000 });
 * ```
 */
export function withContextBudget<Wrapped extends Client>(client: Wrapped, options: OpenAiOptions = {}): Wrapped {
  const budget = createRequestFitter(options);
  return wrapClient(client, {
    "/chat/completions": (body) => prepareChat(body, budget),
    "/responses": (body) => prepareResponse(body, budget),
  });
}

/** Makes a request to chat completions fit. */
export async function prepareChat(body: Fields, budget: RequestFitter<OpenAiRequest>): Promise<PreparedBody> {
  const { reduction, observe } = await budget.fit({
    ...requestFields(body),
    format: "openai",
    messages: body.messages as readonly object[],
    maxOutputTokens: tokensOf(body.max_completion_tokens ?? body.max_tokens),
  });
  return { body: replaceFields(body, { messages: reduction.messages }), observe };
}

/** Makes a request to the responses API fit. Returns undefined if the API holds the conversation. */
export function prepareResponse(body: Fields, budget: RequestFitter<OpenAiRequest>): Promise<PreparedBody> | undefined {
  const isHeld = (body.previous_response_id ?? body.conversation ?? null) !== null || (body.input ?? null) === null;
  return isHeld ? undefined : fitInput(body, budget);
}

/** A plain text is one user message. It cannot be trimmed, but it may be too large. */
async function fitInput(body: Fields, budget: RequestFitter<OpenAiRequest>): Promise<PreparedBody> {
  const { input } = body;
  const isText = typeof input === "string";
  const { reduction, observe } = await budget.fit({
    ...requestFields(body),
    format: "responses",
    messages: isText ? [{ role: "user", content: input }] : (input as readonly object[]),
    system: body.instructions,
    maxOutputTokens: tokensOf(body.max_output_tokens),
  });
  return { body: isText ? body : replaceFields(body, { input: reduction.messages }), observe };
}

type SharedFields = Pick<BudgetCall<OpenAiRequest>, "request" | "model" | "tools" | "cacheLifetimeMs">;

function requestFields(body: Fields): SharedFields {
  const model = typeof body.model === "string" ? body.model : undefined;
  const tools = (body.tools ?? []) as readonly object[];
  return { request: body, model, tools, cacheLifetimeMs: cacheLifetimeMs(body, model) };
}

function tokensOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function cacheLifetimeMs(body: Fields, model: string | undefined): number {
  const { lifetimeMs } = priceOf({ provider: "openai", model }).rules;
  const { ttl } = Object(body.prompt_cache_options) as Fields;
  const isLong = body.prompt_cache_retention === "24h" || (ttl !== undefined && ttl !== "30m");
  return lifetimeMs[isLong ? "1h" : "5m"];
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
export function recallTool(source: RecallSource): RecallTool<OpenAiRecallDefinition> {
  const { definition, ...tool } = createRecallTool(source, (id) => recallOriginal(source, id));
  const { inputSchema: parameters, ...named } = definition;
  return { ...tool, definition: { type: "function", function: { ...named, parameters: { ...parameters } } } };
}

interface OpenAiRecallDefinition {
  readonly type: "function";
  readonly function: Omit<RecallDefinition, "inputSchema"> & { readonly parameters: Record<string, unknown> };
}
