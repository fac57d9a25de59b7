/** Puts what an agent needs to know into one prompt within a token budget. */

export type { ProjectScan } from "../host/index.ts";
export {
  addToFabric,
  type ComposedContext,
  type ContextLayers,
  createPromptComposer,
  emptyFabric,
  type Fabric,
  type FabricReport,
  type PromptComposer,
  type PromptComposerOptions,
  renderFabric,
  renderSnapshot,
  type Snapshot,
  withTask,
} from "../plans/compose/index.ts";
