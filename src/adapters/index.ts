export type { Adapter, Scope } from "./adapter.ts";
export { onOverflows, scopes } from "./adapter.ts";
export type { AuditedTool, AuditReport } from "./audit/audit.ts";
export { chooseAdapters, refuseUnknownTools } from "./choose-adapters.ts";
export { copyToClipboard } from "./clips/clipboard.ts";
export { type ClipResult, draftClip } from "./clips/clips.ts";
export { type EngineOptions, injectFiles, type TargetResult } from "./engine.ts";
export { isEnforced, type LimitUse } from "./fit/limits.ts";
export {
  adaptersWithBlock,
  type LeftOver,
  type RemovedFile,
  removeLeftOvers,
  uninstallFiles,
} from "./left-overs.ts";
export { embeddedAdapters, type LoadedPacks, type LoadPacksOptions, loadPacks } from "./load-packs.ts";
export { injectionStatus, leftOversOf, type StatusOptions, type TargetState } from "./status.ts";

/** Only one command needs it, and the others start faster without. */
export function loadAudit(): Promise<typeof import("./audit/audit.ts")> {
  return import("./audit/audit.ts");
}

/** Only `mcp install` and `mcp uninstall` need it. */
export function loadMcpWire(): Promise<typeof import("./mcp-wire/install-servers.ts")> {
  return import("./mcp-wire/install-servers.ts");
}
export type { Places } from "./targets/targets.ts";
