/** Puts what an agent needs to know into one prompt within a token budget. */
export {
  addToFabric,
  type ComposedContext,
  type ContextLayers,
  createPromptComposer,
  emptyFabric,
  type Fabric,
  type FabricReport,
  type ProjectScan,
  type PromptComposer,
  type PromptComposerOptions,
  renderFabric,
  renderSnapshot,
  type Snapshot,
  withTask,
} from "../plans/compose/index.ts";
