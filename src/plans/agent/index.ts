export { attemptFiles, type OutputName, openAttempt, saidOn } from "./attempt-folder.ts";
export {
  type AgentState,
  type ContextHookOptions,
  createBudgetHook,
  createContextHook,
  createDefaultHooks,
  createHookRegistry,
  type Hook,
  type HookContext,
  type HookOutcome,
  type HookRegistry,
  type LifecycleEvent,
  type LlmInput,
  lifecycleEvents,
} from "./hooks.ts";
export { judgeEnd } from "./judge-end.ts";
export { leaveOutConventions } from "./known-conventions.ts";
export { type AgentChoice, type AgentPreset, agentCommand, agentPresets, optionReason } from "./presets.ts";
export { readScopeState } from "./scope-state.ts";
export { type AgentRequest, adoptAgent, defaultAgentLimits, startAgent } from "./start-agent.ts";
export type { AgentEnd, AgentLimits, AgentOutcome, AgentRun, AgentUsage } from "./watch-agent.ts";
