export { type Adapter, scopes } from "./adapters/adapter.ts";
export { chooseAdapters, refuseUnknownTools } from "./adapters/choose-adapters.ts";
export { isLossAllowed } from "./adapters/draft-file.ts";
export { injectFiles, type TargetResult } from "./adapters/engine.ts";
export {
  type LeftOver,
  listLeftOvers,
  type RemovedFile,
  removeLeftOvers,
  uninstallFiles,
} from "./adapters/left-overs.ts";
export {
  embeddedAdapters,
  loadPacks,
} from "./adapters/load-packs.ts";
export {
  type ContentChoice,
  describePack,
  type ListedPack,
  loadPacksContent,
  type PacksContent,
} from "./adapters/packs-content.ts";
export { explainUnplaced } from "./adapters/plan-files.ts";
export { type InjectChoice, type Prepared, prepareInject } from "./adapters/prepare-inject.ts";
export type { AuditedTool, AuditReport } from "./audit/audit.ts";
export type { AuditedRepository } from "./audit/audit-repositories.ts";
export { type ClipResult, copyToClipboard, draftClip } from "./audit/clips.ts";
export { isEnforced, type LimitUse } from "./audit/limits.ts";

/** Loads `audit`. Only one command needs it, so the others start faster. */
export function loadAudit(): Promise<typeof import("./audit/audit.ts")> {
  return import("./audit/audit.ts");
}

/** Loads the audit of several repositories. */
export function loadRepositoriesAudit(): Promise<typeof import("./audit/audit-repositories.ts")> {
  return import("./audit/audit-repositories.ts");
}

/** Loads the code that finds the files of AI tools for `import`. */
export function loadInstructions(): Promise<typeof import("./audit/find-instructions.ts")> {
  return import("./audit/find-instructions.ts");
}

/** Loads the code for `import --move`. */
export function loadMoveFiles(): Promise<typeof import("./content/move-files.ts")> {
  return import("./content/move-files.ts");
}

/** Loads the code for `mcp install` and `mcp uninstall`. */
export function loadMcpInstall(): Promise<typeof import("./mcp-wire/run-install.ts")> {
  return import("./mcp-wire/run-install.ts");
}

/** Loads the editor that adds an entry to a JSON file and leaves all other bytes. */
export async function loadJsonFormat(): Promise<import("./mcp-wire/wired-server.ts").ConfigFormat> {
  return (await import("./mcp-wire/edit-json.ts")).jsonFormat;
}

export { injectionStatus, type TargetState } from "./adapters/status.ts";
export { type ContentProblem, readEmbeddedContent } from "./content/load-content.ts";
export type { LoadedTokens } from "./content/measure-loads.ts";
export type { MovePlan, MoveResult } from "./content/move-files.ts";
export { addNote, clearNotes, readNotes } from "./content/notes.ts";
export type { ImportResult, KeptTools } from "./content/write-imported.ts";
export { markedBlock } from "./files/marked-block.ts";
export { readProjectTree } from "./files/project-tree.ts";
export { explainFaults } from "./load-model/find-faults.ts";
export type { McpServer } from "./mcp-wire/read-servers.ts";
export type { InstallReport, McpInstallOptions } from "./mcp-wire/run-install.ts";
export type { SyncReport } from "./sync/sync.ts";
export { readProjectFetches } from "./sync/trusted-fetches.ts";

/** Loads `sync` when it is used. Most commands do not need its code for HTTP, DNS and HTML. */
export function loadSync(): Promise<typeof import("./sync/sync.ts")> {
  return import("./sync/sync.ts");
}
