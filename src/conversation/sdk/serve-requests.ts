/** Fits requests for programs in other languages: a message in, an answer out, both JSON. Such a program sends each
 *  request through here before it calls its provider, and gives back the usage of the answer. */
import { providerOfModel } from "../../core/billing/index.ts";
import { ContextError } from "../../core/errors.ts";
import { formatOfRequest } from "../../core/messages/index.ts";
import { type Fields, isPlainObject, messageOf } from "../../core/text/index.ts";
import type { Reduction } from "../history/index.ts";
import { prepareAnthropic } from "./anthropic.ts";
import type { CallEvent } from "./call-events.ts";
import type { FittedCall } from "./conversation.ts";
import { prepareGemini } from "./fetch.ts";
import { prepareChat, prepareResponse } from "./openai.ts";
import { type MarkerOptions, markerChecks } from "./place-markers.ts";
import { readRefusal } from "./refusals.ts";
import {
  type BudgetCall,
  checkBudgetOptions,
  createRequestFitter,
  type RequestFitter,
  type RequestFitterOptions,
} from "./request-fitter.ts";
import type { PreparedBody } from "./wrap-client.ts";

/** The APIs whose requests can be fitted. */
export const apiNames = ["anthropic", "openai", "responses", "gemini"] as const;
export type ApiName = (typeof apiNames)[number];

export interface RequestServerOptions extends RequestFitterOptions<Fields>, MarkerOptions {
  /** The API of messages that name none.
   * @default what the request's fields and model show */
  readonly api?: ApiName | undefined;
}

export interface RequestServer {
  /** Answers one message. A request comes back as it should be sent, under the id of a call. The provider's usage or its
   *  refusal is given back under that id. What is wrong with a message comes back as `error`. */
  answer(message: unknown): Promise<Fields>;
  /** Shortens `{ messages, model }` for a gateway, in the form of LiteLLM's and Portkey's guardrail for compression. What
   *  cannot fit comes back as it is. Throws if the request is wrong. */
  compress(request: unknown): Promise<Fields>;
}

/** A request that was fitted. */
interface FittedRequest {
  /** What to send. */
  readonly body: Fields;
  /** Absent if nothing was fitted, because the API holds the conversation. */
  readonly prepared: PreparedBody | undefined;
  /** How the messages were reduced last. */
  readonly state: { reduction: Reduction | undefined };
}

export function createRequestServer({ api, breakpoints, ttl, ...options }: RequestServerOptions): RequestServer {
  checkBudgetOptions(options, { ...markerChecks, breakpoints: undefined, ttl: undefined });
  const sessions = new WeakMap<Fields, string>();
  let ended: CallEvent | undefined;
  const budget = createRequestFitter<Fields>(
    {
      ...options,
      sessionIdOf: (request) => sessions.get(request) ?? options.sessionIdOf?.(request),
      onCall(event) {
        ended = event;
        options.onCall?.(event);
      },
    },
    "serve",
  );
  const open = createOpenCalls();

  const fitMessage = async ({ request, session, api: named = api, model }: Fields): Promise<FittedRequest> => {
    if (!isPlainObject(request)) throw wrong("request is no object", "Put the JSON of the provider's request there.");
    if (session !== undefined) sessions.set(request, checkText("session", session));
    const state: FittedRequest["state"] = { reduction: undefined };
    const watch = (fitted: FittedCall): FittedCall => {
      state.reduction = fitted.reduction;
      return { ...fitted, refused: async (refusal) => watchAgain(await fitted.refused(refusal)) };
    };
    const watchAgain = (fitted: FittedCall | undefined) => fitted && watch(fitted);
    const watched = { ...budget, fit: async (call: BudgetCall<Fields>) => watch(await budget.fit(call)) };
    const prepare = prepares[chooseApi(named, request)];
    const prepared = await prepare(request, { budget: watched, markers: { breakpoints, ttl }, model });
    return { body: prepared?.body ?? request, prepared, state };
  };

  const answerMessage = async (message: Fields): Promise<Fields> => {
    if ("request" in message) {
      const fitted = await fitMessage(message);
      return { call: open.add(fitted), ...describeFitted(fitted) };
    }
    if (!("call" in message)) throw wrong("there is neither request nor call", 'Send { "request": { … } } first.');
    const id = checkText("call", message.call);
    const call = open.find(id);
    if ("refusal" in message) {
      const again = await fitAgain(call, message.refusal);
      if (again === undefined) return { call: id, request: null };
      open.replace(id, again);
      return { call: id, ...describeFitted(again) };
    }
    open.remove(id);
    ended = undefined;
    call.prepared?.observe(message.usage);
    return { call: id, event: ended === undefined ? null : withNulls(ended) };
  };

  return {
    async answer(message) {
      const id = isPlainObject(message) && "id" in message ? { id: message.id } : {};
      try {
        if (!isPlainObject(message)) throw wrong("the message is no JSON object", 'Send { "request": { … } }.');
        return { ...id, ...(await answerMessage(message)) };
      } catch (error) {
        return { ...id, error: formatError(error) };
      }
    },
    compress: (request) => compressMessages(request, fitMessage),
  };
}

async function compressMessages(
  request: unknown,
  fitMessage: (message: Fields) => Promise<FittedRequest>,
): Promise<Fields> {
  const { messages, model } = isPlainObject(request) ? request : {};
  if (!Array.isArray(messages)) throw wrong("messages is no list", "Send { messages, model }.");
  try {
    const api = messages.every(isPlainText) ? "openai" : chooseApi(undefined, { messages });
    const { body, state } = await fitMessage({ request: { model, messages }, api });
    const { before = 0, after = 0 } = state.reduction?.stats ?? {};
    return describeCompressed(body.messages, before, after);
  } catch (error) {
    // The gateway would block the call. The provider's own refusal says more.
    if (!(error instanceof ContextError) || error.overflow === undefined) throw error;
    const { tokens } = error.overflow;
    return { ...describeCompressed(messages, tokens, tokens), overflow: error.overflow };
  }
}

/** JSON would leave out what is not known, and a reader could not tell that from a wrong name. */
function withNulls(event: CallEvent): Fields {
  return Object.fromEntries(Object.entries(event).map(([name, value]) => [name, value ?? null]));
}

interface PrepareContext {
  readonly budget: RequestFitter<Fields>;
  readonly markers: MarkerOptions;
  /** The model of a request that does not name it in its body. */
  readonly model: unknown;
}

const prepares: Readonly<
  Record<ApiName, (request: Fields, context: PrepareContext) => Promise<PreparedBody | undefined>>
> = {
  anthropic: (request, { budget, markers }) => prepareAnthropic(request, budget, markers),
  // The caller reads the usage itself, so nothing asks for it.
  openai: (request, { budget }) => prepareChat(request, budget, undefined),
  responses: (request, { budget }) => prepareResponse(request, budget),
  gemini: (request, { budget, model }) => prepareGemini(request, budget, typeof model === "string" ? model : undefined),
};

/** Chat messages look alike in two APIs as long as they are plain texts. Then the model decides. */
function chooseApi(named: unknown, request: Fields): ApiName {
  if (named !== undefined) {
    const known = apiNames.find((name) => name === named);
    if (known === undefined) throw wrong(`api is ${JSON.stringify(named)}`, `Use one of ${apiNames.join(", ")}.`);
    return known;
  }
  if ("contents" in request) return "gemini";
  if ("input" in request) return "responses";
  const { messages, model } = request;
  if (!Array.isArray(messages)) throw wrong("the request has no messages", "Send the body that your provider gets.");
  if (!messages.every(isPlainText)) return formatOfRequest(messages) === "anthropic" ? "anthropic" : "openai";
  const isClaude = typeof model === "string" && providerOfModel(model) === "anthropic";
  const hasSystem = messages.some((message) => ["system", "developer"].includes(Object(message).role));
  return "system" in request || (isClaude && !hasSystem) ? "anthropic" : "openai";
}

function isPlainText(message: unknown): boolean {
  const { content, tool_calls: calls } = Object(message) as Fields;
  return typeof content === "string" && calls === undefined;
}

/** Learns from what the provider answered. Returns undefined if no other request can be sent. */
async function fitAgain({ prepared, ...call }: FittedRequest, refusal: unknown): Promise<FittedRequest | undefined> {
  const { status, body } = Object(refusal) as Fields;
  const text = typeof body === "string" ? body : JSON.stringify(body ?? "");
  const read = readRefusal(typeof status === "number" ? status : undefined, text);
  const again = read && (await prepared?.refused(read));
  return again && { ...call, body: again.body, prepared: again };
}

function describeFitted({ body, state: { reduction } }: FittedRequest): Fields {
  const { before, after } = reduction?.stats ?? {};
  return { request: body, tokens: { before, after }, trimmed: reduction?.isEpoch ?? false };
}

/** LiteLLM's guardrail `headroom` and Portkey's, 2026-10. */
function describeCompressed(messages: unknown, before: number, after: number): Fields {
  const compression_ratio = before === 0 ? 1 : after / before;
  return { messages, tokens_before: before, tokens_after: after, compression_ratio };
}

interface OpenCalls {
  /** Returns the call's new id. */
  add(call: FittedRequest): string;
  replace(id: string, call: FittedRequest): void;
  find(id: string): FittedRequest;
  remove(id: string): void;
}

/** Keeps the calls whose usage may still come. A program that never gives it back must not fill the memory. */
function createOpenCalls(): OpenCalls {
  const calls = new Map<string, { readonly call: FittedRequest; readonly length: number }>();
  let [last, length] = [0, 0];
  const remove = (id: string): void => {
    length -= calls.get(id)?.length ?? 0;
    calls.delete(id);
  };
  const set = (id: string, call: FittedRequest): void => {
    remove(id);
    const added = JSON.stringify(call.body).length;
    calls.set(id, { call, length: added });
    length += added;
    for (const oldest of calls.keys()) {
      if (oldest === id || (calls.size <= maxOpenCalls && length <= maxOpenCharacters)) return;
      remove(oldest);
    }
  };
  return {
    add(call) {
      const id = `c${++last}`;
      set(id, call);
      return id;
    },
    replace: set,
    find(id) {
      const call = calls.get(id)?.call;
      if (call !== undefined) return call;
      throw wrong(`there is no open call ${JSON.stringify(id)}`, "Its usage was given before, or it is too old.");
    },
    remove,
  };
}

const maxOpenCalls = 1_000;
/** Of their requests as JSON. A request with 200,000 tokens has a million. */
const maxOpenCharacters = 200_000_000;

function checkText(name: string, value: unknown): string {
  if (typeof value === "string" && value !== "") return value;
  throw wrong(`${name} is ${JSON.stringify(value)}`, "Use a text.");
}

function wrong(message: string, hint: string): ContextError {
  return new ContextError("invalid_argument", message, { hint });
}

/** What is wrong with a message. Any other error is a defect of ours, and must not end the server either. */
export function formatError(error: unknown): Fields {
  if (!(error instanceof ContextError)) return { code: "internal", message: messageOf(error) };
  const { code, message, hint, overflow } = error;
  return { code, message, hint: hint ?? null, ...(overflow !== undefined && { overflow }) };
}
