import type { PluginClient } from "./plugins/plugin.ts";

/** Every client that can have a plugin. To add one, write a file in this folder and a line here. */
export const pluginClients: Readonly<Record<string, () => Promise<PluginClient>>> = {
  "claude-code": async () => (await import("./plugins/claude-code.ts")).claudeCode,
  opencode: async () => (await import("./plugins/opencode.ts")).openCode,
  pi: async () => (await import("./plugins/pi.ts")).pi,
  "gemini-cli": async () => (await import("./plugins/gemini-cli.ts")).geminiCli,
};

export type { HookSettings } from "./plugins/in-client.ts";
export type { OpenCodeHooks } from "./plugins/opencode-hooks.ts";
export type { PiApi } from "./plugins/pi-hooks.ts";

/** Loads what runs inside opencode and pi. */
export async function loadClientHooks(): Promise<
  typeof import("./plugins/in-client.ts") &
    typeof import("./plugins/opencode-hooks.ts") &
    typeof import("./plugins/pi-hooks.ts")
> {
  return {
    ...(await import("./plugins/in-client.ts")),
    ...(await import("./plugins/opencode-hooks.ts")),
    ...(await import("./plugins/pi-hooks.ts")),
  };
}

export {
  changePlugin,
  installState,
  type PluginChange,
  type PluginClient,
  type PluginPlace,
  type PluginSettings,
} from "./plugins/plugin.ts";
export { listPluginSessions, type PluginSession } from "./plugins/plugin-sessions.ts";
export type { PruneReport } from "./prune-store.ts";
export { findClients, type SetupPart, setUpClients } from "./setup.ts";
export { allowMore, guardCall, verdictOn } from "./spend/guard.ts";
export { listGuardRecords, readGuardRecord } from "./spend/guard-record.ts";
export { statusLine } from "./spend/status-line.ts";
