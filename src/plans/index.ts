/** What commands do with agents and plans. The parts have doors of their own, which load less. */
export {
  type AgentPreferences,
  type ChosenAgent,
  checkAgentCommand,
  chooseAgent,
  conventionsOf,
  findInstalledAgents,
} from "./choose-agent.ts";
export {
  type AccountedContext,
  composeContext,
  readContextSettings,
  scanDirectory,
} from "./compose-context.ts";
export {
  type ApplyChoice,
  type ApplySettings,
  limitProblems,
  nebulaSettings,
  phaseOf,
  phaseRuns,
  type RunStart,
  readApplySettings,
  readNebula,
  usableNebula,
  workingDirectory,
} from "./open-nebula.ts";
