export {
  type ComposedContext,
  type ComposedLayer,
  type ContextLayers,
  type ContextShares,
  createPromptComposer,
  type PromptComposer,
  type PromptComposerOptions,
  withTask,
} from "./compose.ts";
export {
  addToFabric,
  addWhatFits,
  type Claim,
  emptyFabric,
  type Fabric,
  type FabricKind,
  type FabricReport,
  type FabricState,
  type FittedReport,
  maxEntries,
  maxEntryLength,
  type NoteKind,
  noteKinds,
  type PhaseState,
  phaseStates,
  type Reporter,
  renderFabric,
  resolveEntry,
} from "./fabric.ts";

export {
  defaultMaxSnapshotTokens,
  leaveOutConventions,
  renderSnapshot,
  type Snapshot,
} from "./render-snapshot.ts";

export type { PriorAnswer } from "./truncate-layer.ts";
