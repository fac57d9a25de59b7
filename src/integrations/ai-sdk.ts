/** The import path `plimsoll/ai-sdk`. */
import type { JSONSchema7, LanguageModel, LanguageModelMiddleware, ModelMessage } from "ai";
import { priceOf, providerOfModel } from "../billing/index.ts";
import {
  createRecallTool,
  optionChecks,
  type RecallDefinition,
  type RecallSource,
  type RecallTool,
  type Reduction,
} from "../history/index.ts";
import type { Fields } from "../text/index.ts";
import { recallOriginal } from "./conversation-intake.ts";
import {
  type BreakpointMode,
  breakpointModes,
  type Lifetime,
  lifetimesOf,
  type MarkerShape,
  markerFor,
  modeFor,
  placeMarkers,
} from "./place-markers.ts";
import {
  type BudgetCall,
  checkBudgetOptions,
  createRequestFitter,
  type FittedCall,
  type RequestFitter,
  type RequestFitterOptions,
  replaceFields,
  type TrimEvent,
} from "./request-fitter.ts";

export type { BreakpointMode, RecallSource, RecallTool, TrimEvent };

type TransformParams = NonNullable<LanguageModelMiddleware["transformParams"]>;
/** What the SDK passes to a middleware for one call. */
export type CallParams = Parameters<TransformParams>[0]["params"];
/** The settings of `contextBudgetMiddleware`: those of a trimmer, with defaults for each model. */
export interface MiddlewareOptions extends RequestFitterOptions<CallParams> {
  /** When to add cache markers for a model of Anthropic, in slots that the call leaves free: `follow` only if the call
   *  has some, `auto` always, `none` never.
   * @default "auto" for a model of Anthropic, "follow" for any other */
  readonly breakpoints?: BreakpointMode | undefined;
}

/**
 * Creates a middleware for `wrapLanguageModel` of the AI SDK. Each call of the model, generated or streamed, gets a
 * prompt that fits. The reported usage corrects the token counter.
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
export function contextBudgetMiddleware(options: MiddlewareOptions = {}): LanguageModelMiddleware {
  const { budget, mode } = openBudget(options);
  const calls = new WeakMap<object, FittedCall>();
  return {
    specificationVersion: "v3",
    async transformParams({ params, model: { modelId } }) {
      const { prompt: messages, tools, maxOutputTokens, providerOptions } = params;
      const shown = { messages, tools, maxOutputTokens };
      const markers = markersIn([messages, tools, { providerOptions }]);
      const fitted = await budget.fit({ request: params, ...shown, ...modelFields(modelId, markers) });
      const own = { messages, tools, providerOptions };
      const prompt = withMarkers(own, fitted.reduction, modeFor(mode, modelId));
      const next = replaceFields(params, { prompt: prompt as CallParams["prompt"] });
      calls.set(next, fitted);
      return next;
    },
    async wrapGenerate({ doGenerate, params }) {
      const result = await doGenerate();
      calls.get(params)?.observe(billed(result.usage));
      return result;
    },
    async wrapStream({ doStream, params }) {
      const result = await doStream();
      const call = calls.get(params);
      return call === undefined ? result : { ...result, stream: observeStream(result.stream, call) };
    },
  };
}

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
}
export type PrepareStep = (step: Step) => Promise<{ messages: ModelMessage[] } | undefined>;

/**
 * Creates a `prepareStep` for `generateText`, `streamText` and agents of the AI SDK. Use it for a model that cannot be
 * wrapped. A step does not show its tools and system text: pass their tokens as `prefixTokens`. After the first answer,
 * the reported usage corrects that number.
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
  const { budget, mode } = openBudget(options);
  // The SDK passes the same array of steps through a whole run.
  const runs = new WeakMap<object, FittedCall>();
  return async (step) => {
    const { messages, model, steps } = step;
    runs.get(steps)?.observe(billed(steps.at(-1)?.usage));
    const shown = { messages, maxOutputTokens: undefined };
    const modelId = typeof model === "string" ? model : model.modelId;
    const fitted = await budget.fit({ request: step, ...shown, ...modelFields(modelId, markersIn(messages)) });
    runs.set(steps, fitted);
    const marked = withMarkers({ messages }, fitted.reduction, modeFor(mode, modelId));
    const next = replaceFields(step, { messages: marked as ModelMessage[] });
    return next === step ? undefined : { messages: next.messages };
  };
}

interface OpenBudget<Request> {
  readonly budget: RequestFitter<Request>;
  readonly mode: BreakpointMode | undefined;
}

type BudgetOptions<Request> = RequestFitterOptions<Request> & { readonly breakpoints?: BreakpointMode | undefined };

function openBudget<Request>({ breakpoints: mode, ...options }: BudgetOptions<Request>): OpenBudget<Request> {
  checkBudgetOptions({ ...options, ...(mode !== undefined && { breakpoints: mode }) }, ownChecks);
  return { budget: createRequestFitter(options), mode };
}

const ownChecks = { breakpoints: optionChecks.oneOf(breakpointModes) };

interface MarkedCall {
  readonly messages: readonly object[];
  readonly tools?: unknown;
  readonly providerOptions?: unknown;
}

/** Places markers in the reduced messages. The system messages at the beginning are what comes before the messages in a
 *  request to Anthropic. */
function withMarkers(
  { messages: own, tools, providerOptions }: MarkedCall,
  reduction: Reduction,
  mode: BreakpointMode,
) {
  const { messages, breakpoints } = reduction;
  const first = Math.max(
    0,
    messages.findIndex((message) => Reflect.get(message, "role") !== "system"),
  );
  const placed = placeMarkers({
    ...{ mode, own, tools, shape: sdkMarkers },
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
  markersOf: markersIn,
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
    if (markersIn(message).length === 0) return message;
    const { content, ...rest } = message as Fields;
    return { ...unmarked(rest), content: Array.isArray(content) ? content.map(unmarked) : content };
  },
};

function markersIn(value: unknown): Lifetime[] {
  if (Array.isArray(value)) return value.flatMap(markersIn);
  const { content, providerOptions } = Object(value) as Fields;
  const inner = Array.isArray(content) ? markersIn(content) : [];
  return [...inner, ...lifetimesOf(Object(Object(providerOptions).anthropic).cacheControl)];
}

function unmarked(value: Fields): Fields {
  const { anthropic, ...others } = Object(value.providerOptions) as Fields;
  if (lifetimesOf(Object(anthropic).cacheControl).length === 0) return value;
  const { cacheControl: _marker, ...rest } = anthropic as Fields;
  return { ...value, providerOptions: { ...others, anthropic: rest } };
}

type StreamResult = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapStream"]>>>;

function observeStream(stream: StreamResult["stream"], call: FittedCall): StreamResult["stream"] {
  type Part = StreamResult["stream"] extends ReadableStream<infer Each> ? Each : never;
  return stream.pipeThrough(
    new TransformStream<Part, Part>({
      transform(part, controller) {
        if (part.type === "finish") call.observe(billed(part.usage));
        controller.enqueue(part);
      },
    }),
  );
}

/** Models report a total with its parts, steps a number. A provider may report nothing. */
function billed(usage: unknown): object {
  const { inputTokens } = Object(usage) as { inputTokens?: unknown };
  return { input_tokens: Object(inputTokens).total ?? inputTokens };
}

// For an unknown provider, assume the longest common lifetime: a cache that may exist is not treated as lost.
const unknownLifetimeMs = 3_600_000;

function modelFields(
  model: string,
  markers: readonly Lifetime[],
): Pick<BudgetCall<unknown>, "format" | "model" | "cacheLifetimeMs"> {
  const provider = providerOfModel(model);
  const lifetimes = provider && priceOf({ provider, model }).rules.lifetimeMs;
  const lifetime = lifetimes?.[markers.includes("1h") ? "1h" : "5m"];
  return { format: "ai-sdk", model, cacheLifetimeMs: lifetime ?? unknownLifetimeMs };
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
export function recallTool(source: RecallSource): RecallTool<SdkRecallDefinition> {
  const { definition, ...tool } = createRecallTool(source, (id) => recallOriginal(source, id));
  const { name, description, inputSchema } = definition;
  return { ...tool, definition: { name, description, inputSchema: { ...inputSchema } as JSONSchema7 } };
}

type SdkRecallDefinition = Omit<RecallDefinition, "inputSchema"> & { readonly inputSchema: JSONSchema7 };
