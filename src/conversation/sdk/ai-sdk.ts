/** The import path `plimsoll/ai-sdk`. */
import type { JSONSchema7, LanguageModel, LanguageModelMiddleware, ModelMessage } from "ai";
import { priceOf, providerOfModel } from "../../core/billing/index.ts";
import type { Fields } from "../../core/text/index.ts";
import { createRecallTool, type RecallDefinition, type RecallSource, type RecallTool } from "../history/index.ts";
import type { CallEvent, CallSummary, WithSummary } from "./call-events.ts";
import type { FittedCall } from "./conversation.ts";
import {
  addedMarkers,
  type BreakpointMode,
  cachePlan,
  type Lifetime,
  type MarkerOptions,
  type MarkerPlan,
  type MarkerShape,
  markerChecks,
  markerFor,
  modeFor,
  placeMarkers,
  readLifetime,
  readMessageMarkers,
} from "./place-markers.ts";
import { recallOriginal } from "./recall-original.ts";
import { type Refusal, readRefusal } from "./refusals.ts";
import {
  type BudgetCall,
  checkBudgetOptions,
  createRequestFitter,
  type RequestFitter,
  type RequestFitterOptions,
  replaceFields,
  type TrimEvent,
} from "./request-fitter.ts";
import { type Outcome, type PreparedRequest, prepareFitted, sendPrepared, withCause } from "./second-try.ts";

export type { CallEvent, CallSummary, RecallTool, TrimEvent };

/** What the SDK passes to a middleware for one call. */
export type CallParams = Parameters<NonNullable<LanguageModelMiddleware["transformParams"]>>[0]["params"];
/** The settings of `contextBudgetMiddleware`: those of a trimmer, with defaults for each model. */
export interface MiddlewareOptions extends RequestFitterOptions<CallParams> {
  /** When to add cache markers for a model of Anthropic, in slots that the call leaves free: `follow` only if the call
   *  has some, `auto` always, `none` never.
   * @default "auto" for a model of Anthropic, "follow" for any other */
  readonly breakpoints?: BreakpointMode | undefined;
  /** How long the cache keeps what the added markers write: 5 minutes, an hour, or `auto`, which chooses at each call
   *  from the pauses of the conversation and the prices of the model. Your own markers keep their lifetime, and decide
   *  that of the added ones.
   * @default "auto" for a model under Anthropic's own name, "5m" for any other */
  readonly ttl?: "auto" | "5m" | "1h" | undefined;
}

/**
 * Creates a middleware for `wrapLanguageModel` of the AI SDK. Each call of the model, generated or streamed, gets a
 * prompt that fits. The reported usage corrects the token counter. `plimsoll.summary()` of the middleware adds up all
 * calls.
 *
 * @example
 * ```ts
 * import { wrapLanguageModel } from "ai";
 * import { contextBudgetMiddleware } from "plimsoll/ai-sdk";
 *
 * type Model = Parameters<typeof wrapLanguageModel>[0]["model"];
 * export function withBudget(model: Model) {
 *   return wrapLanguageModel({ model, middleware: contextBudgetMiddleware({ contextWindow: 200_000 }) });
 * }
 * ```
 */
export function contextBudgetMiddleware(options: MiddlewareOptions = {}): LanguageModelMiddleware & WithSummary {
  const { budget, marking } = openBudget(options);
  const calls = new WeakMap<object, PreparedCall>();
  return {
    plimsoll: { summary: budget.calls.summary },
    specificationVersion: "v3",
    async transformParams({ params, model: { modelId } }) {
      const { prompt: messages, tools, maxOutputTokens, providerOptions } = params;
      const ownMarkers = readMessageMarkers(messages, sdkMarkers);
      const [first, later] = [readSdkMarkers(tools), readSdkMarkers({ providerOptions })];
      for (const [message, markers] of ownMarkers)
        (Reflect.get(message, "role") === "system" ? first : later).push(...markers);
      const fields = readModelFields(modelId, marking, { first, later });
      const fitted = await budget.fit({ request: params, messages, tools, maxOutputTokens, ...fields });
      const own = { messages, ownMarkers, tools, providerOptions };
      const breakpoints = modeFor(marking.breakpoints, modelId);
      const prepared = prepareFitted(fitted, (_reduction, current) => {
        const prompt = addMarkers(own, current, { ...marking, breakpoints });
        return replaceFields(params, { prompt: prompt as CallParams["prompt"] });
      });
      calls.set(prepared.body, prepared);
      return prepared.body;
    },
    async wrapGenerate({ doGenerate, params, model }) {
      const first = calls.get(params);
      if (first === undefined) return doGenerate();
      return sendPrepared(first, async (call) => {
        const sent = call === first ? doGenerate() : model.doGenerate(call.body);
        return readOutcome(sent, (result) => {
          call.observe(readBilled(result.usage));
          return result;
        });
      });
    },
    async wrapStream({ doStream, params, model }) {
      const first = calls.get(params);
      if (first === undefined) return doStream();
      return sendPrepared(first, async (call) => {
        const sent = await openStream(call === first ? doStream() : model.doStream(call.body));
        if (sent.refusal !== undefined) return sent;
        return { ...sent, settle: () => observeStream(sent.settle(), call) };
      });
    },
  };
}

type PreparedCall = PreparedRequest<CallParams>;

/** A call that fails with an error has its refusal in there. */
async function readOutcome<Result>(
  sent: PromiseLike<Result>,
  accept: (result: Result) => Result,
): Promise<Outcome<Result>> {
  try {
    const result = await sent;
    return { refusal: undefined, settle: () => accept(result) };
  } catch (error) {
    return {
      refusal: findRefusalIn(error),
      settle(note) {
        throw withCause(error, note);
      },
    };
  }
}

/** The SDK's error has the answer as text; a part of a stream may have anything. */
function findRefusalIn(error: unknown): Refusal | undefined {
  const { statusCode, responseBody, message, data } = Object(error) as Fields;
  const texts = [responseBody, message, data, typeof error === "string" ? error : undefined];
  const text = texts.map((each) => (typeof each === "object" ? JSON.stringify(each) : (each ?? ""))).join(" ");
  return readRefusal(typeof statusCode === "number" ? statusCode : undefined, text);
}

/** Starts a stream and looks for a refusal as its first part that says something. */
async function openStream(sent: PromiseLike<StreamResult>): Promise<Outcome<StreamResult>> {
  const outcome = await readOutcome(sent, (result) => result);
  if (outcome.refusal !== undefined) return outcome;
  const result = outcome.settle();
  const reader = result.stream.getReader();
  const read: StreamPart[] = [];
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    read.push(part.value);
    if (!announcements.includes(part.value.type)) break;
  }
  const last = read.at(-1);
  const stream = new ReadableStream<StreamPart>({
    async pull(controller) {
      const waiting = read.shift();
      const { value, done } = waiting === undefined ? await reader.read() : { value: waiting, done: false };
      if (done) controller.close();
      else controller.enqueue(value as StreamPart);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return {
    refusal: last?.type === "error" ? findRefusalIn(last.error) : undefined,
    settle: () => ({ ...result, stream }),
  };
}

const announcements: readonly string[] = ["stream-start", "response-metadata", "raw"];

/** The fields of the SDK's `prepareStep` argument that are read here. */
export interface Step {
  readonly messages: ModelMessage[];
  readonly model: LanguageModel;
  readonly steps: readonly { readonly usage: unknown }[];
}

/** The settings of `contextBudgetPrepareStep`: those of a trimmer, with defaults for each model. */
export interface PrepareStepOptions extends RequestFitterOptions<Step> {
  /** When to add cache markers to the messages, for a model of Anthropic: `follow` only if the messages have some,
   *  `auto` always, `none` never.
   * @default "auto" for a model of Anthropic, "follow" for any other */
  readonly breakpoints?: BreakpointMode | undefined;
  /** How long the cache keeps what the added markers write: 5 minutes, an hour, or `auto`, which chooses at each call
   *  from the pauses of the conversation and the prices of the model. Your own markers keep their lifetime, and decide
   *  that of the added ones.
   * @default "auto" for a model under Anthropic's own name, "5m" for any other */
  readonly ttl?: "auto" | "5m" | "1h" | undefined;
}
export type PrepareStep = ((step: Step) => Promise<{ messages: ModelMessage[] } | undefined>) & WithSummary;

/**
 * Creates a `prepareStep` for `generateText`, `streamText` and agents of the AI SDK. Use it for a model that cannot be
 * wrapped. A step does not show its tools and system text: pass their tokens as `prefixTokens`. After the first answer,
 * the reported usage corrects that number. `plimsoll.summary()` of the function adds up all steps that another step
 * followed: the usage of the last one does not come back.
 *
 * @example
 * ```ts
 * import { generateText, type LanguageModel } from "ai";
 * import { contextBudgetPrepareStep } from "plimsoll/ai-sdk";
 *
 * export function ask(model: LanguageModel, prompt: string) {
 *   const prepareStep = contextBudgetPrepareStep({ contextWindow: 200_000, prefixTokens: 5_000 });
 *   return generateText({ model, prompt, prepareStep });
 * }
 * ```
 */
export function contextBudgetPrepareStep(options: PrepareStepOptions = {}): PrepareStep {
  const { budget, marking } = openBudget(options);
  // The SDK passes the same array of steps through a whole run.
  const runs = new WeakMap<object, FittedCall>();
  const prepareStep = async (step: Step): Promise<{ messages: ModelMessage[] } | undefined> => {
    const { messages, model, steps } = step;
    runs.get(steps)?.observe(readBilled(steps.at(-1)?.usage));
    const modelId = typeof model === "string" ? model : model.modelId;
    const ownMarkers = readMessageMarkers(messages, sdkMarkers);
    const fields = readModelFields(modelId, marking, { first: [], later: [...ownMarkers.values()].flat() });
    const fitted = await budget.fit({ request: step, messages, maxOutputTokens: undefined, ...fields });
    runs.set(steps, fitted);
    const mode = modeFor(marking.breakpoints, modelId);
    const marked = addMarkers({ messages, ownMarkers }, fitted, { ...marking, breakpoints: mode });
    const next = replaceFields(step, { messages: marked as ModelMessage[] });
    return next === step ? undefined : { messages: next.messages };
  };
  return Object.assign(prepareStep, { plimsoll: { summary: budget.calls.summary } });
}

function openBudget<Request>(all: RequestFitterOptions<Request> & MarkerOptions): {
  readonly budget: RequestFitter<Request>;
  readonly marking: MarkerOptions;
} {
  checkBudgetOptions(all, markerChecks);
  const { breakpoints, ttl, ...options } = all;
  return { budget: createRequestFitter(options, "ai-sdk"), marking: { breakpoints, ttl } };
}

/** Places markers in the reduced messages. The system messages at the beginning are what comes before the messages in a
 *  request to Anthropic. */
function addMarkers(
  {
    messages: own,
    ownMarkers,
    tools,
    providerOptions,
  }: Pick<MarkerPlan, "ownMarkers" | "messages" | "tools"> & { readonly providerOptions?: unknown },
  { reduction, lifetime: chosen }: FittedCall,
  options: MarkerOptions & { readonly breakpoints: BreakpointMode },
) {
  const { messages, breakpoints } = reduction;
  const first = Math.max(
    0,
    messages.findIndex((message) => Reflect.get(message, "role") !== "system"),
  );
  const { lifetime, anchor } = addedMarkers(options, chosen);
  const placed = placeMarkers({
    mode: options.breakpoints,
    own,
    ownMarkers,
    tools,
    lifetime,
    shape: sdkMarkers,
    anchor: anchor === undefined ? undefined : anchor - first,
    automatic: Object(Object(providerOptions).anthropic).cacheControl,
    system: messages.slice(0, first),
    messages: messages.slice(first),
    breakpoints: breakpoints.map((index) => index - first).filter((index) => index >= 0),
  });
  return [...(placed.system as readonly object[]), ...placed.messages];
}

/** A marker is the `cacheControl` in the options for Anthropic, on a message, a part, a tool or the whole call. The SDK
 *  applies that of a message to its last part. */
const sdkMarkers: MarkerShape = {
  readMarkers: readSdkMarkers,
  isMarkable(value) {
    const message = Array.isArray(value) ? value.at(-1) : value;
    const { role, content } = Object(message) as Fields;
    if (typeof content === "string") return content !== "";
    const { type, text } = Object(Array.isArray(content) ? content.at(-1) : undefined) as Fields;
    return role !== undefined && type !== undefined && type !== "reasoning" && text !== "";
  },
  mark(value, lifetime) {
    if (Array.isArray(value)) return value.with(-1, sdkMarkers.mark(value.at(-1), lifetime));
    const { providerOptions } = Object(value) as Fields;
    const anthropic = { ...Object(Object(providerOptions).anthropic), cacheControl: markerFor(lifetime) };
    return { ...Object(value), providerOptions: { ...Object(providerOptions), anthropic } };
  },
  withoutMarkers(message) {
    if (readSdkMarkers(message).length === 0) return message;
    const { content, ...rest } = message as Fields;
    return { ...dropMarker(rest), content: Array.isArray(content) ? content.map(dropMarker) : content };
  },
};

function readSdkMarkers(value: unknown): Lifetime[] {
  if (Array.isArray(value)) return value.flatMap(readSdkMarkers);
  const { content, providerOptions } = Object(value) as Fields;
  const inner = Array.isArray(content) ? readSdkMarkers(content) : [];
  return [...inner, ...readLifetime(Object(Object(providerOptions).anthropic).cacheControl)];
}

function dropMarker(value: Fields): Fields {
  const { anthropic, ...others } = Object(value.providerOptions) as Fields;
  if (readLifetime(Object(anthropic).cacheControl).length === 0) return value;
  const { cacheControl: _marker, ...rest } = anthropic as Fields;
  return { ...value, providerOptions: { ...others, anthropic: rest } };
}

type StreamResult = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapStream"]>>>;
type StreamPart = StreamResult["stream"] extends ReadableStream<infer Each> ? Each : never;

function observeStream(result: StreamResult, call: PreparedCall): StreamResult {
  const watch = new TransformStream<StreamPart, StreamPart>({
    transform(part, controller) {
      if (part.type === "finish") call.observe(readBilled(part.usage));
      controller.enqueue(part);
    },
  });
  return { ...result, stream: result.stream.pipeThrough(watch) };
}

/** Models report a total with its parts, steps numbers. A provider may report nothing. */
function readBilled(usage: unknown): object {
  const { inputTokens, outputTokens, cachedInputTokens, inputTokenDetails, raw } = Object(usage) as Fields;
  const { total = inputTokens, cacheRead, cacheWrite } = Object(inputTokens) as Fields;
  const details = Object(inputTokenDetails) as Fields;
  const read = Number(cacheRead ?? details.cacheReadTokens ?? cachedInputTokens ?? 0);
  const written = Number(cacheWrite ?? details.cacheWriteTokens ?? 0);
  return {
    input_tokens: typeof total === "number" ? Math.max(0, total - read - written) : undefined,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
    // Only Anthropic's own usage says for how long it was written.
    cache_creation: Object(raw).cache_creation,
    output_tokens: Object(outputTokens).total ?? outputTokens,
  };
}

// For an unknown provider, assume the longest common lifetime: a cache that may exist is not treated as lost.
const unknownLifetimeMs = 3_600_000;

/** `first` are the markers in tools and system text. */
function readModelFields(
  model: string,
  marking: MarkerOptions,
  { first, later }: { readonly first: readonly Lifetime[]; readonly later: readonly Lifetime[] },
): Pick<BudgetCall<unknown>, "format" | "model" | "cacheLifetimeMs" | "cachePrice" | "ownMarkers"> {
  const provider = providerOfModel(model);
  const markers = [...first, ...later];
  const ttl = markers.includes("1h") ? "1h" : "5m";
  const ownMarkers = { prefix: first.length > 0, end: later.length > 0 || provider !== "anthropic", ttl } as const;
  const fields = { format: "ai-sdk", model, ownMarkers } as const;
  if (provider === "anthropic") return { ...fields, ...cachePlan(marking, model, markers) };
  const lifetimes = provider && priceOf({ provider, model }).rules.lifetimeMs;
  return { ...fields, cacheLifetimeMs: lifetimes?.[ttl] ?? unknownLifetimeMs };
}

/**
 * Creates a tool with which the model reads what was trimmed. It adds nothing to requests by itself: put `definition`
 * into the list of tools, answer calls with `handle`, and add `instructions` to the system text.
 *
 * @example
 * ```ts
 * import { jsonSchema, tool } from "ai";
 * import { recallTool } from "plimsoll/ai-sdk";
 * import { createMemoryStore } from "plimsoll/store";
 *
 * const source = { store: createMemoryStore(), sessionId: "build-7" };
 * const { definition, handle, instructions } = recallTool(source);
 * const { name, description, inputSchema } = definition;
 * const tools = { [name]: tool({ description, inputSchema: jsonSchema(inputSchema), execute: handle }) };
 * console.log(Object.keys(tools), instructions);
 * ```
 */
export function recallTool(
  source: RecallSource,
): RecallTool<Omit<RecallDefinition, "inputSchema"> & { readonly inputSchema: JSONSchema7 }> {
  const { definition, ...tool } = createRecallTool(source, (id) => recallOriginal(source, id));
  const { name, description, inputSchema } = definition;
  return { ...tool, definition: { name, description, inputSchema: { ...inputSchema } as JSONSchema7 } };
}
