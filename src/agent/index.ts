export { type ContextHookOptions, createContextHook } from "./hooks/context-hook.ts";
export type { AgentState, HookContext, LlmInput } from "./hooks/hook-context.ts";
export {
  createHookRegistry,
  type Hook,
  type HookOutcome,
  type HookRegistry,
  type LifecycleEvent,
  lifecycleEvents,
} from "./hooks/hook-registry.ts";
