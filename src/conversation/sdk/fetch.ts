/** The import path `plimsoll/fetch`. */
import { priceOf } from "../../core/billing/index.ts";
import { ContextError } from "../../core/errors.ts";
import { geminiSystemText } from "../../core/messages/index.ts";
import { type Fields, isPlainObject } from "../../core/text/index.ts";
import { createRecallTool, type RecallSource, type RecallTool } from "../history/index.ts";
import { prepareAnthropic, prepareCount } from "./anthropic.ts";
import type { CallEvent, CallSummary, WithSummary } from "./call-events.ts";
import { prepareChat, prepareResponse } from "./openai.ts";
import { type BreakpointMode, type MarkerOptions, markerChecks } from "./place-markers.ts";
import { callQuietly } from "./report-failure.ts";
import {
  checkBudgetOptions,
  createRequestFitter,
  type RequestFitter,
  type RequestFitterOptions,
  replaceFields,
  type TrimEvent,
} from "./request-fitter.ts";
import { prepareFitted, sendPrepared } from "./second-try.ts";
import { findRefusal, watchResponse } from "./watch-response.ts";
import type { PreparedBody } from "./wrap-client.ts";

export type { CallEvent, CallSummary, RecallTool, TrimEvent };

/** The JSON body of a request, as an SDK wrote it. */
export type FetchedRequest = Fields & {
  readonly model?: string;
  readonly metadata?: { readonly [name: string]: string | null | undefined } | null;
};

/** The settings of `budgetedFetch`: those of a trimmer, with defaults for each model. */
export interface BudgetedFetchOptions extends RequestFitterOptions<FetchedRequest> {
  /** When to add cache markers to requests for Anthropic's API, in slots that they leave free: `follow` only if the
   *  request has some, `auto` always, `none` never.
   * @default "auto" for a model of Anthropic, "follow" for any other */
  readonly breakpoints?: BreakpointMode | undefined;
  /** How long the cache keeps what the added markers write: 5 minutes, an hour, or `auto`, which chooses at each call
   *  from the pauses of the conversation and the prices of the model. Your own markers keep their lifetime, and decide
   *  that of the added ones.
   * @default "auto" for a model under Anthropic's own name, "5m" for any other */
  readonly ttl?: "auto" | "5m" | "1h" | undefined;
  /** Called with the error if a request could not be read or trimmed. The request is then sent as it is. Also called
   *  with a note about what was tried if the provider refused a request twice, once for each callback that fails, with
   *  the code `hook_failed`, and once if the store fails; these requests are trimmed.
   * @default a warning of the process for callbacks and the store */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** The `fetch` of a runtime or an SDK. */
type Fetch = typeof globalThis.fetch;

/**
 * Wraps a `fetch`, so that every request to a model fits. Pass the result to any SDK that takes a `fetch`. It covers
 * Anthropic's `/v1/messages`, OpenAI's `/chat/completions` and `/responses`, and Gemini's `generateContent` and
 * `streamGenerateContent`. All other requests and all answers pass unchanged. A request that cannot fit is not sent:
 * it is answered with status 400, in the form of its provider, with the sizes in `error.overflow`. `plimsoll.summary()`
 * of the result adds up all calls.
 *
 * @example
 * ```ts
 * import OpenAI from "openai";
 * import { budgetedFetch } from "plimsoll/fetch";
 *
 * const client = new OpenAI({ apiKey: "your key", fetch: budgetedFetch(fetch, { contextWindow: 200_000 }) });
 * ```
 */
export function budgetedFetch(fetch: Fetch, options: BudgetedFetchOptions = {}): Fetch & WithSummary {
  checkBudgetOptions(options, markerChecks);
  const { breakpoints, ttl, ...rest } = options;
  const budget: RequestFitter<Fields> = createRequestFitter(rest as RequestFitterOptions<Fields>, "fetch");
  const budgeted: Fetch = async (input, init) => {
    const api = findApi(input, init);
    const given = api === undefined ? undefined : await readBody(input, init);
    if (api === undefined || given === undefined) return fetch(input, init);
    let prepared: PreparedBody | undefined;
    try {
      prepared = await api.prepare(given, { budget, markers: { breakpoints, ttl }, url: readUrl(input) });
    } catch (error) {
      const refusal = answerRefusal(error, api);
      if (refusal !== undefined) return refusal;
      callQuietly(() => options.onError?.(error));
    }
    if (prepared === undefined) return fetch(input, init);
    return sendPrepared(prepared, async (each) => {
      const { response, refusal } = await findRefusal(await send(fetch, { input, init, given, body: each.body }));
      return {
        refusal,
        settle(note) {
          if (note !== undefined) callQuietly(() => options.onError?.(note));
          return watchResponse(response, each);
        },
      };
    });
  };
  return Object.assign(budgeted, { plimsoll: { summary: budget.calls.summary } });
}

interface PrepareContext {
  readonly budget: RequestFitter<Fields>;
  readonly markers: MarkerOptions;
  readonly url: URL;
}

/** The API of a provider: its path, and how to prepare a request for it. Undefined leaves a request as it is. */
interface Api {
  readonly path: RegExp;
  prepare(body: Fields, context: PrepareContext): Promise<PreparedBody | undefined>;
  /** Returns the error with which the provider refuses a request. */
  refuse(message: string): Fields & { readonly error: Fields };
}

const anthropicRefusal: Api["refuse"] = (message) => ({
  type: "error",
  error: { type: "invalid_request_error", message },
});

const openAiRefusal: Api["refuse"] = (message) => ({
  error: { message, type: "invalid_request_error", param: "messages", code: "context_length_exceeded" },
});

const apis: readonly Api[] = [
  {
    path: /\/v1\/messages$/,
    prepare: (body, { budget, markers }) => prepareAnthropic(body, budget, markers),
    refuse: anthropicRefusal,
  },
  {
    path: /\/v1\/messages\/count_tokens$/,
    prepare: (body, { budget, markers }) => prepareCount(body, budget, markers),
    refuse: anthropicRefusal,
  },
  {
    path: /\/chat\/completions$/,
    prepare: (body, { budget, url }) => prepareChat(body, budget, url),
    refuse: openAiRefusal,
  },
  {
    path: /\/responses$/,
    prepare: (body, { budget }) => prepareResponse(body, budget),
    refuse: openAiRefusal,
  },
  {
    path: /\/models\/[^/]+:(?:generateContent|streamGenerateContent)$/,
    // The model is in the path.
    prepare: (body, { budget, url }) => prepareGemini(body, budget, /\/models\/([^/]+):\w+$/.exec(url.pathname)?.[1]),
    refuse: (message) => ({ error: { code: 400, message, status: "INVALID_ARGUMENT" } }),
  },
];

/** Makes a request to Gemini fit. Its body does not name the model. */
export async function prepareGemini(
  body: Fields,
  budget: RequestFitter<Fields>,
  model: string | undefined,
): Promise<PreparedBody> {
  const { maxOutputTokens } = Object(body.generationConfig) as Fields;
  const fitted = await budget.fit({
    request: body,
    format: "gemini",
    model,
    messages: body.contents as readonly object[],
    system: geminiSystemText(body.systemInstruction),
    tools: (body.tools ?? []) as readonly object[],
    maxOutputTokens: typeof maxOutputTokens === "number" ? maxOutputTokens : undefined,
    cacheLifetimeMs: priceOf({ provider: "gemini", model }).rules.lifetimeMs["5m"],
    ownMarkers: { prefix: false, end: true, ttl: "5m" },
  });
  return prepareFitted(fitted, ({ messages }) => replaceFields(body, { contents: messages }));
}

type Input = Parameters<Fetch>[0];
type Init = Parameters<Fetch>[1];

function findApi(input: Input, init: Init): Api | undefined {
  const method = init?.method ?? (input instanceof Request ? input.method : "GET");
  if (method.toUpperCase() !== "POST") return undefined;
  const { pathname } = readUrl(input);
  return apis.find(({ path }) => path.test(pathname));
}

/** A relative URL has a base in browsers only. Its path is what counts here. */
function readUrl(input: Input): URL {
  return new URL(input instanceof Request ? input.url : String(input), "http://localhost");
}

/** Returns the JSON object of a request's body. Undefined if the body is something else, or a stream that could be read
 *  only once. */
async function readBody(input: Input, init: Init): Promise<Fields | undefined> {
  const body = init?.body ?? undefined;
  const isBytes = body instanceof ArrayBuffer || body instanceof Uint8Array;
  let text = typeof body === "string" ? body : isBytes ? new TextDecoder().decode(body) : "";
  if (body === undefined && input instanceof Request) text = await input.clone().text();
  try {
    const value: unknown = JSON.parse(text);
    return isPlainObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the answer to a request that must not be sent: it cannot fit, or an option is missing. */
function answerRefusal(error: unknown, { refuse }: Api): Response | undefined {
  if (!(error instanceof ContextError)) return undefined;
  if (error.code !== "context_overflow" && error.code !== "invalid_argument") return undefined;
  const sentence = error.message.replace(/\.?$/, ".");
  const message = error.hint === undefined ? sentence : `${sentence} ${error.hint}`;
  const refusal = refuse(`plimsoll: ${message}`);
  const details = error.overflow === undefined ? {} : { overflow: error.overflow };
  return Response.json({ ...refusal, error: { ...refusal.error, ...details } }, { status: 400 });
}

/** Sends the prepared body. A request that did not change is sent as the caller wrote it. */
function send(
  fetch: Fetch,
  {
    input,
    init,
    given,
    body,
  }: { readonly input: Input; readonly init: Init; readonly given: Fields; readonly body: Fields },
): Promise<Response> {
  if (body === given) return fetch(input, init);
  const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined));
  // The runtime sets the new length.
  headers.delete("content-length");
  return fetch(input, { ...init, headers, body: JSON.stringify(body) });
}

/**
 * Creates a tool with which the model reads what was trimmed. It adds nothing to requests by itself: put `definition`
 * into the list of tools, answer calls with `handle`, and add `instructions` to the system text.
 *
 * @example
 * ```ts
 * import { budgetedFetch, recallTool } from "plimsoll/fetch";
 * import { createMemoryStore } from "plimsoll/store";
 *
 * const source = { store: createMemoryStore(), sessionId: "build-7" };
 * const budgeted = budgetedFetch(fetch, source);
 * const { definition, handle, instructions } = recallTool(source);
 * console.log(budgeted.name, definition.inputSchema, instructions, await handle({ id: "k3vbq5zoha" }));
 * ```
 */
export function recallTool(source: RecallSource): RecallTool {
  return createRecallTool(source);
}
