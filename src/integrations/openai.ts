/** Door of `plimsoll/openai`: a client of openai whose requests fit the model's window. */
import { priceOf } from "../billing/index.ts";
import {
  type BudgetCall,
  type ContextBudget,
  type ContextBudgetOptions,
  createContextBudget,
  type TrimEvent,
} from "./budget/context-budget.ts";
import { type Client, type Fields, type PreparedBody, wrapClient } from "./client/wrap-client.ts";
import { replaceFields } from "./replace-fields.ts";

export type { TrimEvent };

/** The body of a request as the caller passed it. */
export type OpenAiRequest = Fields;
export type OpenAiOptions = ContextBudgetOptions<OpenAiRequest>;

/** The client with `chat.completions` and `responses` (create, parse, stream, tool runners) kept within the window; all else is the
 *  client's own. A conversation that the API itself holds (`previous_response_id`, `conversation`) passes as it is. */
export function withContextBudget<Wrapped extends Client>(
  client: Wrapped,
  options: OpenAiOptions = {},
): Wrapped {
  const budget = createContextBudget(options);
  return wrapClient(client, {
    "/chat/completions": (body) => prepareChat(body, budget),
    "/responses": (body) => (isHeldByApi(body) ? undefined : prepareResponse(body, budget)),
  });
}

function isHeldByApi({ previous_response_id, conversation, input }: Fields): boolean {
  return (previous_response_id ?? conversation ?? null) !== null || (input ?? null) === null;
}

async function prepareChat(body: Fields, budget: ContextBudget<OpenAiRequest>): Promise<PreparedBody> {
  const { reduction, observe } = await budget.fit({
    ...requestFields(body),
    format: "openai",
    messages: body.messages as readonly object[],
    maxOutputTokens: tokensOf(body.max_completion_tokens ?? body.max_tokens),
  });
  return { body: replaceFields(body, { messages: reduction.messages }), observe };
}

/** A plain text is the user's message: there is nothing to trim in it, but it may be too large. */
async function prepareResponse(body: Fields, budget: ContextBudget<OpenAiRequest>): Promise<PreparedBody> {
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
