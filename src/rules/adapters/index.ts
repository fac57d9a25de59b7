export type { AuditedTool, AuditReport } from "../audit/audit.ts";
export { type ClipResult, copyToClipboard, draftClip } from "../audit/clips.ts";
export { applyBudgets, isEnforced, type LimitUse, type ToolBudgets } from "../audit/limits.ts";
export { type Adapter, type Scope, scopes } from "./adapter.ts";
export { chooseAdapters, refuseUnknownTools } from "./choose-adapters.ts";
export { type EngineOptions, injectFiles, type TargetResult } from "./engine.ts";
export {
  type LeftOver,
  leftOversOf,
  type RemovedFile,
  removeLeftOvers,
  uninstallFiles,
} from "./left-overs.ts";
export {
  embeddedAdapters,
  type LoadedPacks,
  type LoadPacksOptions,
  loadPacks,
  type PackChoice,
  type PackSelection,
} from "./load-packs.ts";
export { withRelated } from "./plan-files.ts";

/** Loads `audit`. Only one command needs it, so the others start faster. */
export function loadAudit(): Promise<typeof import("../audit/audit.ts")> {
  return import("../audit/audit.ts");
}

/** Loads the code that finds the files of AI tools for `import`. */
export function loadInstructions(): Promise<typeof import("../audit/find-instructions.ts")> {
  return import("../audit/find-instructions.ts");
}

/** Loads the code for `mcp install` and `mcp uninstall`. */
export function loadMcpWire(): Promise<typeof import("../mcp-wire/install-servers.ts")> {
  return import("../mcp-wire/install-servers.ts");
}

export type { McpServer } from "../mcp-wire/read-servers.ts";
export { injectionStatus, type StatusOptions, type TargetState } from "./status.ts";
export type { Places } from "./targets.ts";
