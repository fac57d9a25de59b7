/** Starts agents as processes, and calls hooks at the points of an agent's life. */

export { scanProject } from "../host/index.ts";
export {
  type AgentEnd,
  type AgentLimits,
  type AgentPreset,
  type AgentRequest,
  type AgentRun,
  type AgentState,
  agentPresets,
  type ContextHookOptions,
  createBudgetHook,
  createContextHook,
  createDefaultHooks,
  createHookRegistry,
  type Hook,
  type HookRegistry,
  type LifecycleEvent,
  startAgent,
} from "../plans/agent/index.ts";
