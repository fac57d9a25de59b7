import {
  type BudgetOverflow,
  type ContextManagerOptions,
  type ContextMetadata,
  createContextManager,
  estimateTokens,
  type RfcMessage,
} from "../../conversation/history/index.ts";
import { ContextError } from "../../core/errors.ts";
import { argumentChecks, isAmount, refuseValue } from "../../core/text/index.ts";
import type { Session } from "../../results/session/index.ts";

/** Options of `createContextHook`. */
export interface ContextHookOptions extends ContextManagerOptions {
  /**
   * Tokens that stay free for the answer. The model's input gets the same number as `maxTokens`.
   * @default 16_000
   */
  readonly reservedOutputTokens?: number | undefined;
}

/**
 * Creates the context hook of the context-engineering RFC. Before each inference it trims the history to what the
 * model's window leaves after the system prompt and the answer. It stores the model's input in `state.llmInput` and the
 * trim boundary in `state.metadata`. On other events it does nothing.
 *
 * @example
 * ```ts
 * import { type AgentState, createContextHook, createHookRegistry } from "plimsoll/agent";
 *
 * const hooks = createHookRegistry();
 * hooks.register("before_inference", createContextHook({ reservedOutputTokens: 8_000 }));
 *
 * const state: AgentState = { messages: [{ role: "user", content: "Hello" }] };
 * await hooks.run("before_inference", { model: { limit: { context: 200_000 } }, state });
 * console.log(state.llmInput?.messages);
 * ```
 */
export function createContextHook(options: ContextHookOptions = {}): Hook<HookContext> {
  const { reservedOutputTokens: reserved, ...managed } = options;
  const reservedOutputTokens = reserved ?? 16_000;
  const keepLastNAssistantMessages = managed.keepLastNAssistantMessages ?? 50;
  const manager = createContextManager({ ...managed, keepLastNAssistantMessages });
  checkTokens("reservedOutputTokens", reservedOutputTokens);
  return ({ model, state }, event) => {
    if (event !== "before_inference") return "continue";
    const limit = checkTokens("model.limit.context", model?.limit?.context);
    const prompt = state.systemPrompt ?? undefined;
    if (prompt !== undefined && typeof prompt !== "string")
      return refuseValue("state.systemPrompt", prompt, { wanted: "a string" });
    const system: readonly RfcMessage[] = prompt === undefined ? [] : [{ role: "system", content: prompt }];
    const { messages, metadata, overflow } = manager.reduceContextWithBudget(state.messages, {
      contextWindow: Math.max(0, limit - estimateTokens(system) - reservedOutputTokens),
      metadata: state.metadata,
      tools: state.tools,
    });
    if (metadata !== undefined) state.metadata = metadata;
    if (overflow === undefined) delete state.overflow;
    else state.overflow = overflow;
    const { tools } = state;
    const input = { messages: [...system, ...messages], maxTokens: reservedOutputTokens };
    state.llmInput = tools === undefined || tools === null ? input : { ...input, tools };
    return "continue";
  };
}

/**
 * Creates a hook that connects a session to each request. Register it for "before_inference" before the context hook.
 * It puts the session's budget warning at the end of the system prompt, and replaces the definitions of the session's
 * tools by the current ones, which say what the budget allows if the session has `hints: "schema"`. After a new message
 * of the user it begins a turn. The session's account gets the tokens of the system prompt, the tools and the message.
 *
 * @example
 * ```ts
 * import { type AgentState, createBudgetHook, createContextHook, createHookRegistry } from "plimsoll/agent";
 * import { createSession } from "plimsoll/session";
 * import { createTools } from "plimsoll/tools";
 *
 * const session = await createSession({ tools: createTools({ root: "." }), hints: "schema", now: Date.now });
 * const hooks = createHookRegistry();
 * for (const hook of [createBudgetHook(session), createContextHook()]) hooks.register("before_inference", hook);
 * const state: AgentState = { systemPrompt: "You look for bugs.", messages: [{ role: "user", content: "Where?" }] };
 * await hooks.run("before_inference", { model: { limit: { context: 200_000 } }, state });
 * console.log(state.llmInput?.tools?.length, session.status().summary);
 * ```
 */
export function createBudgetHook(
  session: Pick<Session, "beginTurn" | "record" | "countTokens" | "toolSchemas" | "forModel">,
): Hook<HookContext> {
  return async ({ state }, event): Promise<HookOutcome> => {
    if (event !== "before_inference") return "continue";
    const last = state.messages.at(-1) as { readonly role?: unknown; readonly content?: unknown } | undefined;
    if (last?.role === "user") {
      const { content } = last;
      const text = typeof content === "string" ? content : (JSON.stringify(content) ?? "");
      await session.beginTurn();
      await session.record("user", session.countTokens(text));
    }
    // The state is stored and comes back with the warning of the previous request.
    const prompt = (state.systemPrompt ?? "").replace(/(^|\n\n)\[Budget Alert: [^\n\]]*\]$/, "");
    state.tools = replaceTools(state.tools ?? [], session.toolSchemas());
    await session.record("system", session.countTokens(prompt) + session.countTokens(JSON.stringify(state.tools)));
    const { warning } = session.forModel();
    state.systemPrompt = [prompt, warning ?? ""].filter((text) => text !== "").join("\n\n");
    return "continue";
  };
}

/** Replaces definitions with the names of the session's tools, and adds the missing ones at the end. */
function replaceTools(tools: readonly object[], schemas: ReturnType<Session["toolSchemas"]>): readonly object[] {
  const current = new Map<unknown, object>(
    schemas.map(({ name, description, inputSchema }) => [name, { name, description, input_schema: inputSchema }]),
  );
  const replaced = tools.map((tool) => current.get((tool as { readonly name?: unknown }).name) ?? tool);
  return [...replaced, ...[...current.values()].filter((tool) => !replaced.includes(tool))];
}

function checkTokens(name: string, value: unknown): number {
  return isAmount(value) ? value : refuseValue(name, value, { wanted: "a number of tokens from 0" });
}

/** What hooks share. Hooks change `state`, which a checkpoint stores as plain JSON. */
export interface HookContext {
  /** The model. `limit.context` is its whole window in tokens. */
  readonly model: { readonly limit: { readonly context: number } };
  readonly state: AgentState;
}

/** The state of an agent that hooks read and change. */
export interface AgentState {
  /** The whole history in the RFC's message format, not trimmed. */
  messages: readonly object[];
  /** The system prompt. The context hook puts it before the messages. */
  systemPrompt?: string | null;
  /** The tool definitions that each request sends. */
  tools?: readonly object[] | null;
  /** Where the last trim ended, as the context hook stored it. Null in checkpoints of some programs. */
  metadata?: ContextMetadata | null;
  /** What goes to the model. The context hook writes it before each inference. */
  llmInput?: LlmInput;
  /** Present if `llmInput` is still above the threshold. */
  overflow?: BudgetOverflow;
}

export interface LlmInput {
  readonly messages: readonly RfcMessage[];
  readonly maxTokens: number;
  readonly tools?: readonly object[];
}

/**
 * Calls hooks at the points of an agent's life. The hooks of an event run in the order of their registration, one after
 * the other.
 */
export interface HookRegistry<Context extends object = HookContext> {
  /** Adds a hook for an event. Throws if the event is unknown. */
  register(event: LifecycleEvent, hook: Hook<Context>): void;
  /**
   * Runs the hooks of an event. Returns "stop" as soon as one hook does, without calling the next ones. Rejects with
   * the error of a hook that throws.
   */
  run(event: LifecycleEvent, context: Context): Promise<HookOutcome>;
}

/**
 * A function that works on the context. It returns "stop" to end the agent's work, and "continue" or nothing otherwise.
 */
export type Hook<Context extends object = HookContext> = (
  context: Context,
  event: LifecycleEvent,
  // biome-ignore lint/suspicious/noConfusingVoidType: what a function without a return has
) => HookOutcome | void | Promise<HookOutcome | void>;

export type HookOutcome = "continue" | "stop";

export const lifecycleEvents = [
  "session_start",
  "before_inference",
  "after_inference",
  "before_tool",
  "after_tool",
  "session_end",
] as const;
/** The points of an agent's life at which hooks run. */
export type LifecycleEvent = (typeof lifecycleEvents)[number];

/**
 * Creates a registry that runs hooks at the points of an agent's life.
 *
 * @example
 * ```ts
 * import { createHookRegistry } from "plimsoll/agent";
 *
 * const hooks = createHookRegistry<{ calls: number }>();
 * hooks.register("before_tool", (context) => (++context.calls > 100 ? "stop" : "continue"));
 * console.log(await hooks.run("before_tool", { calls: 0 }));
 * ```
 */
export function createHookRegistry<Context extends object = HookContext>(): HookRegistry<Context> {
  const hooks = new Map<LifecycleEvent, readonly Hook<Context>[]>();
  const checkEvent = argumentChecks.oneOf(lifecycleEvents);
  return {
    register(event, hook) {
      checkEvent("lifecycle event", event);
      if (typeof hook !== "function") {
        throw new ContextError("invalid_argument", `a hook must be a function, not a ${typeof hook}`);
      }
      // Creates a new list, so that a hook that registers another hook does not change the current run.
      hooks.set(event, [...(hooks.get(event) ?? []), hook]);
    },
    async run(event, context) {
      checkEvent("lifecycle event", event);
      for (const hook of hooks.get(event) ?? []) {
        const outcome: unknown = await hook(context, event);
        if (outcome === "stop") return "stop";
        if (outcome === undefined || outcome === "continue") continue;
        throw new ContextError("invalid_argument", `a hook for ${event} returned ${JSON.stringify(outcome)}`, {
          hint: 'Return "continue", "stop", or nothing to continue.',
        });
      }
      return "continue";
    },
  };
}

/**
 * Creates the default registry of the context-engineering RFC: its context hook before each inference, which keeps the
 * newest 10 assistant messages and trims above 0.8 of the window. You can register other hooks too.
 *
 * @example
 * ```ts
 * import { createDefaultHooks } from "plimsoll/agent";
 *
 * const hooks = createDefaultHooks();
 * hooks.register("session_end", ({ state }) => console.log(state.metadata));
 * ```
 */
export function createDefaultHooks(options: ContextHookOptions = {}): HookRegistry {
  const hooks = createHookRegistry();
  hooks.register("before_inference", createContextHook({ keepLastNAssistantMessages: 10, ...options }));
  return hooks;
}
