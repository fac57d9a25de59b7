/** Door of `plimsoll/ai-sdk`: a middleware and a `prepareStep` for the AI SDK that keep requests within the model's window. */
import type { LanguageModel, LanguageModelMiddleware, ModelMessage } from "ai";
import { priceOf, providerOfModel } from "../billing/index.ts";
import {
  type BudgetCall,
  type ContextBudgetOptions,
  createContextBudget,
  type TrimEvent,
} from "./budget/context-budget.ts";
import type { FittedCall } from "./budget/session.ts";
import { replaceFields } from "./replace-fields.ts";

export type { TrimEvent };

type TransformParams = NonNullable<LanguageModelMiddleware["transformParams"]>;
/** What the SDK hands to a middleware for one call. */
export type CallParams = Parameters<TransformParams>[0]["params"];
export type MiddlewareOptions = ContextBudgetOptions<CallParams>;

/** For `wrapLanguageModel`. Each call of the model, generated or streamed, gets a prompt that fits; its usage corrects the counter. */
export function contextBudgetMiddleware(options: MiddlewareOptions = {}): LanguageModelMiddleware {
  const budget = createContextBudget(options);
  const calls = new WeakMap<object, FittedCall>();
  return {
    specificationVersion: "v3",
    async transformParams({ params, model: { modelId } }) {
      const { prompt: messages, tools, maxOutputTokens } = params;
      const shown = { messages, tools, maxOutputTokens };
      const fitted = await budget.fit({ request: params, ...shown, ...modelFields(modelId) });
      const next = replaceFields(params, { prompt: fitted.reduction.messages as CallParams["prompt"] });
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

/** What the SDK hands to `prepareStep`, as far as it is read here. */
export interface Step {
  readonly messages: ModelMessage[];
  readonly model: LanguageModel;
  readonly steps: readonly { readonly usage: unknown }[];
}

export type PrepareStepOptions = ContextBudgetOptions<Step>;
export type PrepareStep = (step: Step) => Promise<{ messages: ModelMessage[] } | undefined>;

/** For `prepareStep` of generateText, streamText and agents. A step does not show its tools and system text: `prefixTokens` is what they
 *  take, until the first answer's usage tells. */
export function contextBudgetPrepareStep(options: PrepareStepOptions = {}): PrepareStep {
  const budget = createContextBudget(options);
  // The SDK passes one array of steps through a whole run.
  const runs = new WeakMap<object, FittedCall>();
  return async (step) => {
    const { messages, model, steps } = step;
    runs.get(steps)?.observe(billed(steps.at(-1)?.usage));
    const shown = { messages, maxOutputTokens: undefined };
    const modelId = typeof model === "string" ? model : model.modelId;
    const fitted = await budget.fit({ request: step, ...shown, ...modelFields(modelId) });
    runs.set(steps, fitted);
    const next = replaceFields(step, { messages: fitted.reduction.messages as ModelMessage[] });
    return next === step ? undefined : { messages: next.messages };
  };
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

/** Models tell a total with its parts, steps a number; a provider may tell nothing. */
function billed(usage: unknown): object {
  const { inputTokens } = Object(usage) as { inputTokens?: unknown };
  return { input_tokens: Object(inputTokens).total ?? inputTokens };
}

// Of an unknown provider the longest lifetime that is common: a cache is not called lost that may be there.
const unknownLifetimeMs = 3_600_000;

function modelFields(model: string): Pick<BudgetCall<unknown>, "format" | "model" | "cacheLifetimeMs"> {
  const provider = providerOfModel(model);
  const lifetimes = provider && priceOf({ provider, model }).rules.lifetimeMs;
  return { format: "ai-sdk", model, cacheLifetimeMs: lifetimes?.["5m"] ?? unknownLifetimeMs };
}
