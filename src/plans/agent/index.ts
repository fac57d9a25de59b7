export { attemptFiles, findSpokenStream, type OutputName, openAttempt } from "./attempt-folder.ts";
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
export { type JudgedEnd, judgeEnd, type SessionTotals } from "./judge-end.ts";
export {
  type AgentChoice,
  type AgentPreset,
  agentCommand,
  agentPresets,
  explainOption,
  isSessionId,
} from "./presets.ts";
export { type AgentLine, createEventReader, type EventReader } from "./read-events.ts";
export { createScopeTest, readScopeState } from "./scope-state.ts";
export { type AgentRequest, adoptAgent, defaultAgentLimits, startAgent } from "./start-agent.ts";
export {
  type AgentEnd,
  type AgentLimits,
  type AgentOutcome,
  type AgentRun,
  type AgentUsage,
  sendSignal,
} from "./watch-agent.ts";
