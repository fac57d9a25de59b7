export {
  type ComposedContext,
  type ComposedLayer,
  type ContextLayers,
  type ContextShares,
  type LayerName,
  withTask,
} from "./compose.ts";
export {
  type ContextBudget,
  type ContextBudgetOptions,
  createContextBudget,
} from "./context-budget.ts";
export {
  type AddedReport,
  addToFabric,
  addWhatFits,
  type FabricReport,
  type FittedReport,
  maxEntries,
  maxEntryLength,
  type ReportedDiscovery,
  type ReportedNote,
  type Reporter,
} from "./fabric/add-to-fabric.ts";
export {
  type Claim,
  type Discovery,
  type Entanglement,
  emptyFabric,
  type Fabric,
  type FabricKind,
  type FabricNote,
  type FabricPhase,
  type FabricState,
  type NoteKind,
  noteKinds,
  type PhaseState,
  phaseStates,
} from "./fabric/fabric-state.ts";
export { renderFabric } from "./fabric/render-fabric.ts";
export { resolveEntry } from "./fabric/resolve-entry.ts";
export type { ConventionsFile, ProjectScan, ScanProblem } from "./snapshot/project-scan.ts";
export {
  defaultMaxSnapshotTokens,
  renderSnapshot,
  type Snapshot,
  type SnapshotOptions,
} from "./snapshot/render-snapshot.ts";
