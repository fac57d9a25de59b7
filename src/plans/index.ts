/** What commands do with agents and plans. The parts have doors of their own, which load less. */
export {
  type AgentPreferences,
  type ChosenAgent,
  checkAgentCommand,
  chooseAgent,
  findInstalledAgents,
  findLoadedFiles,
} from "./choose-agent.ts";
export {
  type AccountedContext,
  composeContext,
  readContextSettings,
  scanDirectory,
} from "./compose-context.ts";
export { generateNebula } from "./generate-nebula.ts";
export {
  type ApplyChoice,
  type ApplySettings,
  checkProblems,
  chooseReviewers,
  findPhase,
  limitProblems,
  nebulaSettings,
  phaseRuns,
  type RunStart,
  readApplySettings,
  readNebula,
  readProjectSettings,
  requireNebula,
  workingDirectory,
} from "./open-nebula.ts";
