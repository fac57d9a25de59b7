export { type Environment, scanProject } from "../workspace/index.ts";
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
export type { ApplyEvent, ApplyReport, PhaseReport } from "./nebula/apply/apply-event.ts";
export { applyNebula } from "./nebula/apply/apply-nebula.ts";
export type { ApplyOptions } from "./nebula/apply/apply-options.ts";
export {
  type ApplyPlan,
  type PlannedPhase,
  type PlanOptions,
  planApply,
} from "./nebula/apply/plan-apply.ts";
export { standingOf } from "./nebula/apply/standing.ts";
export { type AnswerPlace, readAnswer } from "./nebula/apply/state/answers.ts";
export { findAttempts, lastWords, removeAttempts } from "./nebula/apply/state/attempt-folders.ts";
export type { AgentSetting } from "./nebula/files/agent-settings.ts";
export { type LoadedNebula, loadNebula, type NebulaProblem } from "./nebula/files/load-nebula.ts";
export type { Gate, Nebula, Phase } from "./nebula/files/nebula.ts";
export { renderTask } from "./nebula/files/render-task.ts";
export { wavesOf } from "./nebula/files/waves.ts";
export { nebulaKey } from "./nebula/record/nebula-key.ts";
export {
  fabricOf,
  type NebulaRecord,
  type OpenNebulaRecord,
  openNebulaRecord,
  type PhaseRun,
} from "./nebula/record/nebula-record.ts";
export { person } from "./nebula/record/record-changes.ts";
export { type AgentChoice, agentCommand, agentPresets } from "./process/presets.ts";
export { type AgentRequest, type AgentRun, startAgent } from "./process/start-agent.ts";
export {
  type AgentEnd,
  type AgentLimits,
  defaultAgentLimits,
} from "./process/watch-agent.ts";
