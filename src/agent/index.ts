export { type Environment, scanProject } from "../workspace/index.ts";
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
export { type AgentPreset, agentCommand, agentPresets, optionReason } from "./presets.ts";
export { readScopeState } from "./scope-state.ts";
export {
  type AgentEnd,
  type AgentLimits,
  type AgentOutcome,
  type AgentRequest,
  type AgentRun,
  type AgentUsage,
  adoptAgent,
  defaultAgentLimits,
  startAgent,
} from "./start-agent.ts";
