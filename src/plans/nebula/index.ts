export type { ApplyEvent, ApplyOptions, ApplyReport, FinishedWork, PhaseReport } from "./application.ts";
export {
  type ApplyPlan,
  applyNebula,
  type PlannedPhase,
  planApply,
  planPrompt,
  standingOf,
} from "./apply-nebula.ts";
export { type AttemptOutput, attemptOutput, findAttempts, lastWords } from "./attempt-folders.ts";
export { type LoadedNebula, loadNebula, type NebulaProblem, readNebulaName } from "./load-nebula.ts";
export { type Nebula, type Phase, wavesOf, withDependents } from "./nebula.ts";
export { nebulaKey, storedKey } from "./nebula-key.ts";
export {
  fabricOf,
  type NebulaRecord,
  openNebulaRecord,
  type PrunedNebula,
  pruneNebulas,
  readAnswer,
} from "./nebula-record.ts";
export { renderTask } from "./phase-prompt.ts";
export { person } from "./record-changes.ts";
export { dollars } from "./spending.ts";
