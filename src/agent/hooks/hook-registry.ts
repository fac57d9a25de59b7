/** Hooks around an agent's work: what is registered for an event runs in order, one after the other, before the agent goes on. */
import { ContextError } from "../../errors.ts";
import type { HookContext } from "./hook-context.ts";

export interface HookRegistry<Context extends object = HookContext> {
  register(event: LifecycleEvent, hook: Hook<Context>): void;
  /** "stop" as soon as a hook says so: those behind it do not run. Rejects with what a hook throws, and ends there too. */
  run(event: LifecycleEvent, context: Context): Promise<HookOutcome>;
}

/** A hook works on the context itself, and says whether the agent may go on. One that says nothing lets it. */
export type Hook<Context extends object = HookContext> = (
  context: Context,
  event: LifecycleEvent,
) => HookAnswer | Promise<HookAnswer>;

// biome-ignore lint/suspicious/noConfusingVoidType: what a function without a return has
type HookAnswer = HookOutcome | void;

export type HookOutcome = "continue" | "stop";

export const lifecycleEvents = [
  "session_start",
  "before_inference",
  "after_inference",
  "before_tool",
  "after_tool",
  "session_end",
] as const;
export type LifecycleEvent = (typeof lifecycleEvents)[number];

export function createHookRegistry<Context extends object = HookContext>(): HookRegistry<Context> {
  const hooks = new Map<LifecycleEvent, readonly Hook<Context>[]>();
  return {
    register(event, hook) {
      checkEvent(event);
      if (typeof hook !== "function") {
        throw new ContextError("invalid_argument", `a hook must be a function, not a ${typeof hook}`);
      }
      // A new list, so that a hook which registers another one does not change the run that it is part of.
      hooks.set(event, [...(hooks.get(event) ?? []), hook]);
    },
    async run(event, context) {
      checkEvent(event);
      for (const hook of hooks.get(event) ?? []) {
        if (outcomeOf(await hook(context, event), event) === "stop") return "stop";
      }
      return "continue";
    },
  };
}

function checkEvent(event: LifecycleEvent): void {
  if (lifecycleEvents.includes(event)) return;
  throw new ContextError("invalid_argument", `unknown lifecycle event ${JSON.stringify(event)}`, {
    hint: `Events are ${lifecycleEvents.join(", ")}.`,
  });
}

function outcomeOf(answer: unknown, event: LifecycleEvent): HookOutcome {
  if (answer === undefined || answer === "continue") return "continue";
  if (answer === "stop") return "stop";
  throw new ContextError("invalid_argument", `a hook for ${event} returned ${JSON.stringify(answer)}`, {
    hint: 'Return "continue", "stop" or nothing, which is "continue".',
  });
}
