/** One conversation: its trimmer, made anew from its own state when another model answers, and what is known of the provider's cache. */
import {
  createTrimmer,
  type Reduction,
  type Trimmer,
  type TrimmerOptions,
  type TrimRequest,
} from "../../history/index.ts";
import type { FormatName } from "../../messages/index.ts";
import { billedInputTokens } from "../../tokens/index.ts";
import { type CallTimes, openCallTimes } from "./call-times.ts";
import { type Limits, limitsFor } from "./limits.ts";

export interface SessionOptions extends Omit<TrimmerOptions, "contextWindow" | "format" | "checkpoint"> {
  readonly contextWindow?: number | undefined;
  readonly now: () => number;
}

export interface SessionCall extends TrimRequest {
  readonly format: FormatName;
  readonly model: string | undefined;
  readonly maxOutputTokens: number | undefined;
  /** How long the provider's cache lives after a call. */
  readonly cacheLifetimeMs: number;
}

export interface FittedCall {
  readonly reduction: Reduction;
  readonly limits: Limits;
  /** Takes the usage of the answer. */
  observe(usage: unknown): void;
}

export interface Session {
  /** Calls take effect one after the other. What an epoch decided is in the store before its request is given back. */
  fit(call: SessionCall): Promise<FittedCall>;
}

export function createSession(id: string, options: SessionOptions): Session {
  const state: State = {
    id,
    options,
    current: undefined,
    times: undefined,
    maxOutputTokens: 0,
    calls: 0,
    observedTokens: 0,
  };
  let queue: Promise<unknown> = Promise.resolve();
  return {
    fit(call) {
      const fitted = queue.then(() => fitNext(state, call));
      queue = fitted.catch(() => undefined);
      return fitted;
    },
  };
}

interface State {
  readonly id: string;
  readonly options: SessionOptions;
  current: { readonly trimmer: Trimmer; readonly settings: Settings } | undefined;
  times: CallTimes | undefined;
  /** The longest answer that was ever asked for: a call that asks for a short one is no reason to change the budget. */
  maxOutputTokens: number;
  /** Number of the last call. */
  calls: number;
  /** Size of the largest request since the last epoch whose usage was observed. */
  observedTokens: number;
}

type Settings = Limits & Pick<SessionCall, "format" | "model">;

async function fitNext(state: State, call: SessionCall): Promise<FittedCall> {
  const { trimmer, settings: limits } = await trimmerFor(state, call);
  const isCold = await isCacheCold(state, call);
  const { messages, system, tools } = call;
  const reduction = trimmer.reduce({ messages, system, tools }, { isCold });
  const number = ++state.calls;
  if (reduction.isEpoch) {
    state.observedTokens = 0;
    if (state.options.store !== undefined) await trimmer.checkpoint();
  }
  const { after } = reduction.stats;
  return {
    reduction,
    limits,
    observe(usage) {
      // A trimmer takes usage as that of its last request. A smaller request than before is a side question, such as one for a title:
      // taken as the new total it would make the next estimate, and so the budget, less certain.
      if (number !== state.calls || after < state.observedTokens) return;
      if (billedInputTokens(usage) === undefined) return;
      trimmer.observe(usage);
      state.observedTokens = after;
    },
  };
}

/** The trimmer with the settings of this call. Decisions hold on under other settings. */
async function trimmerFor(state: State, call: SessionCall): Promise<NonNullable<State["current"]>> {
  const { current, id } = state;
  const { now: _now, contextWindow, reserve, ...options } = state.options;
  const { format, model } = call;
  state.maxOutputTokens = Math.max(state.maxOutputTokens, call.maxOutputTokens ?? 0);
  const limits = limitsFor({ contextWindow, reserve, model, maxOutputTokens: state.maxOutputTokens });
  const settings: Settings = { ...limits, format, model };
  if (current !== undefined && isSame(current.settings, settings)) return current;
  const checkpoint = await current?.trimmer.checkpoint();
  const trimmer = await createTrimmer({ ...options, ...settings, sessionId: id, checkpoint });
  state.observedTokens = 0;
  state.current = { trimmer, settings };
  return state.current;
}

function isSame(known: Settings, asked: Settings): boolean {
  const names = ["contextWindow", "reserve", "format", "model"] as const;
  return names.every((name) => known[name] === asked[name]);
}

/** Nothing is left of a cache that this model did not write, or not lately: an early epoch costs nothing extra then. */
async function isCacheCold(state: State, { model = "", cacheLifetimeMs }: SessionCall): Promise<boolean> {
  const { options, id } = state;
  state.times ??= await openCallTimes(options.store, id);
  const now = options.now();
  const before = await state.times.note(model, now);
  return before === undefined || now - before > cacheLifetimeMs;
}
