/** The import path `plimsoll/fetch`. */
import { priceOf } from "../billing/index.ts";
import { ContextError } from "../errors.ts";
import { createRecallTool, optionChecks, type RecallSource, type RecallTool } from "../history/index.ts";
import { geminiSystemText } from "../messages/index.ts";
import { type Fields, isPlainObject } from "../text/index.ts";
import { prepareAnthropic } from "./anthropic.ts";
import { prepareChat, prepareResponse } from "./openai.ts";
import { type BreakpointMode, breakpointModes } from "./place-markers.ts";
import {
  checkBudgetOptions,
  createRequestFitter,
  type RequestFitter,
  type RequestFitterOptions,
  replaceFields,
  type TrimEvent,
} from "./request-fitter.ts";
import { createUsageReader, type PreparedBody, type UsageReader } from "./wrap-client.ts";

export type { BreakpointMode, RecallSource, RecallTool, TrimEvent };

/** The settings of `budgetedFetch`: those of a trimmer, with defaults for each model. */
export interface BudgetedFetchOptions extends RequestFitterOptions<Fields> {
  /** When to add cache markers to requests for Anthropic's API, in slots that they leave free: `follow` only if the
   *  request has some, `auto` always, `none` never.
   * @default "auto" for a model of Anthropic, "follow" for any other */
  readonly breakpoints?: BreakpointMode | undefined;
  /** Called with the error if a request could not be read or trimmed. The request is then sent as it is. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** The `fetch` of a runtime or an SDK. */
type Fetch = typeof globalThis.fetch;

/**
 * Wraps a `fetch`, so that every request to a model fits. Pass the result to any SDK that takes a `fetch`. It covers
 * Anthropic's `/v1/messages`, OpenAI's `/chat/completions` and `/responses`, and Gemini's `generateContent` and
 * `streamGenerateContent`. All other requests and all answers pass unchanged. A request that cannot fit is not sent:
 * it is answered with status 400, in the form of its provider.
 *
 * @example
 * ```ts
 * import OpenAI from "openai";
 * import { budgetedFetch } from "plimsoll/fetch";
 *
 * const client = new OpenAI({ apiKey: "your key", fetch: budgetedFetch(fetch, { contextWindow: 200_000 }) });
 * ```
 */
export function budgetedFetch(fetch: Fetch, options: BudgetedFetchOptions = {}): Fetch {
  checkBudgetOptions(options, {
    breakpoints: optionChecks.oneOf(breakpointModes),
    onError: optionChecks.callback,
  });
  const { breakpoints: mode, onError, ...rest } = options;
  const budget = createRequestFitter<Fields>(rest);
  return async (input, init) => {
    const api = apiOf(input, init);
    const given = api === undefined ? undefined : await readBody(input, init);
    if (api === undefined || given === undefined) return fetch(input, init);
    let prepared: PreparedBody | undefined;
    try {
      prepared = await api.prepare(given, { budget, mode, url: urlOf(input) });
    } catch (error) {
      const refusal = refusalOf(error, api);
      if (refusal !== undefined) return refusal;
      onError?.(error);
    }
    if (prepared === undefined) return fetch(input, init);
    const response = await send(fetch, { input, init, given, prepared });
    return observeResponse(response, createUsageReader(prepared.observe));
  };
}

interface PrepareContext {
  readonly budget: RequestFitter<Fields>;
  readonly mode: BreakpointMode | undefined;
  readonly url: URL;
}

/** The API of a provider: its path, and how to prepare a request for it. Undefined leaves a request as it is. */
interface Api {
  readonly path: RegExp;
  prepare(body: Fields, context: PrepareContext): Promise<PreparedBody> | undefined;
  /** Returns the body with which the provider refuses a request. */
  refuse(message: string): object;
}

const openAiRefusal = (message: string): object => ({
  error: { message, type: "invalid_request_error", param: "messages", code: "context_length_exceeded" },
});

const apis: readonly Api[] = [
  {
    path: /\/v1\/messages$/,
    prepare: (body, { budget, mode }) => prepareAnthropic(body, budget, mode),
    refuse: (message) => ({ type: "error", error: { type: "invalid_request_error", message } }),
  },
  {
    path: /\/chat\/completions$/,
    prepare: (body, { budget }) => prepareChat(body, budget),
    refuse: openAiRefusal,
  },
  {
    path: /\/responses$/,
    prepare: (body, { budget }) => prepareResponse(body, budget),
    refuse: openAiRefusal,
  },
  {
    path: /\/models\/[^/]+:(?:generateContent|streamGenerateContent)$/,
    prepare: prepareGemini,
    refuse: (message) => ({ error: { code: 400, message, status: "INVALID_ARGUMENT" } }),
  },
];

/** Makes a request to Gemini fit. The model is in the path. */
async function prepareGemini(body: Fields, { budget, url }: PrepareContext): Promise<PreparedBody> {
  const model = /\/models\/([^/]+):\w+$/.exec(url.pathname)?.[1];
  const { maxOutputTokens } = Object(body.generationConfig) as Fields;
  const { reduction, observe } = await budget.fit({
    request: body,
    format: "gemini",
    model,
    messages: body.contents as readonly object[],
    system: geminiSystemText(body.systemInstruction),
    tools: (body.tools ?? []) as readonly object[],
    maxOutputTokens: typeof maxOutputTokens === "number" ? maxOutputTokens : undefined,
    cacheLifetimeMs: priceOf({ provider: "gemini", model }).rules.lifetimeMs["5m"],
  });
  return { body: replaceFields(body, { contents: reduction.messages }), observe };
}

type Input = Parameters<Fetch>[0];
type Init = Parameters<Fetch>[1];

function apiOf(input: Input, init: Init): Api | undefined {
  const method = init?.method ?? (input instanceof Request ? input.method : "GET");
  if (method.toUpperCase() !== "POST") return undefined;
  const { pathname } = urlOf(input);
  return apis.find(({ path }) => path.test(pathname));
}

/** A relative URL has a base in browsers only. Its path is what counts here. */
function urlOf(input: Input): URL {
  return new URL(input instanceof Request ? input.url : String(input), "http://localhost");
}

/** Returns the JSON object of a request's body. Undefined if the body is something else, or a stream that could be read
 *  only once. */
async function readBody(input: Input, init: Init): Promise<Fields | undefined> {
  const body = init?.body ?? undefined;
  const text = body === undefined && input instanceof Request ? await input.clone().text() : textOf(body);
  try {
    const value: unknown = JSON.parse(text ?? "");
    return isPlainObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function textOf(body: unknown): string | undefined {
  if (typeof body === "string") return body;
  return body instanceof ArrayBuffer || body instanceof Uint8Array ? new TextDecoder().decode(body) : undefined;
}

/** Returns the answer to a request that must not be sent: it cannot fit, or an option is missing. */
function refusalOf(error: unknown, { refuse }: Api): Response | undefined {
  if (!(error instanceof ContextError)) return undefined;
  if (error.code !== "context_overflow" && error.code !== "invalid_argument") return undefined;
  const sentence = error.message.replace(/\.?$/, ".");
  const message = error.hint === undefined ? sentence : `${sentence} ${error.hint}`;
  return Response.json(refuse(`plimsoll: ${message}`), { status: 400 });
}

interface Sending {
  readonly input: Input;
  readonly init: Init;
  readonly given: Fields;
  readonly prepared: PreparedBody;
}

/** Sends the prepared body. A request that did not change is sent as the caller wrote it. */
function send(fetch: Fetch, { input, init, given, prepared }: Sending): Promise<Response> {
  if (prepared.body === given) return fetch(input, init);
  const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined));
  // The runtime sets the new length.
  headers.delete("content-length");
  return fetch(input, { ...init, headers, body: JSON.stringify(prepared.body) });
}

/** Reads the usage from an answer as it passes. The bytes are not changed, and nothing is held back. */
function observeResponse(response: Response, reader: UsageReader): Response {
  const { body, ok, status, statusText, headers } = response;
  if (body === null || !ok) return response;
  const isStream = headers.get("content-type")?.includes("text/event-stream") === true;
  const watch = isStream ? createEventWatcher(reader) : createJsonWatcher(reader);
  const observed = new Response(body.pipeThrough(watch), { status, statusText, headers });
  for (const name of ["url", "redirected", "type"] as const) {
    Object.defineProperty(observed, name, { value: response[name], configurable: true });
  }
  return observed;
}

/** A server-sent event of a model is one line of JSON. */
function createEventWatcher(reader: UsageReader): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  let rest = "";
  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk);
      const lines = `${rest}${decoder.decode(chunk, { stream: true })}`.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line.startsWith("data:")) addJson(reader, line.slice("data:".length));
    },
    flush: () => reader.end(),
  });
}

function createJsonWatcher(reader: UsageReader): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  let text = "";
  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk);
      text += decoder.decode(chunk, { stream: true });
    },
    flush() {
      addJson(reader, text);
      reader.end();
    },
  });
}

function addJson(reader: UsageReader, text: string): void {
  if (!text.includes("sage")) return;
  try {
    reader.add(JSON.parse(text));
  } catch {
    // An answer that is not JSON has no usage.
  }
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
