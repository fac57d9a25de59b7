export type { ApplyEvent, ApplyOptions, ApplyReport, GateAnswer, PhaseReport } from "./application.ts";
export {
  type ApplyPlan,
  applyNebula,
  type PlannedPhase,
  planApply,
  planPrompt,
  reportStates,
} from "./apply-nebula.ts";
export { type AttemptOutput, findOutputFile, openAttemptOutput, readActivity } from "./attempt-folders.ts";
export { changeFabric, readFabric } from "./change-fabric.ts";
export { type LoadedNebula, loadNebula, type NebulaProblem } from "./load-nebula.ts";
export { groupWaves, type Nebula, type Phase, withDependents } from "./nebula.ts";
export { nebulaKey, storedKey } from "./nebula-key.ts";
export {
  fabricOf,
  type NebulaRecord,
  openNebulaRecord,
  type PrunedNebula,
  pruneNebulas,
  readAnswer,
} from "./nebula-record.ts";
export { diffWork } from "./open-git.ts";
export { renderTask } from "./phase-prompt.ts";
export { dollars } from "./spending.ts";
export { readChecks } from "./verify-work.ts";
export { nameBranches } from "./worktrees.ts";
