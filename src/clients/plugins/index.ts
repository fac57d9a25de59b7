import type { PluginClient } from "./plugin.ts";

/** Every client that can have a plugin. To add one, write a file in this folder and a line here. */
export const pluginClients: Readonly<Record<string, () => Promise<PluginClient>>> = {
  "claude-code": async () => (await import("./claude-code.ts")).claudeCode,
  opencode: async () => (await import("./opencode.ts")).openCode,
  pi: async () => (await import("./pi.ts")).pi,
  "gemini-cli": async () => (await import("./gemini-cli.ts")).geminiCli,
};

export type { HookSettings } from "./in-client.ts";
export type { OpenCodeHooks } from "./opencode-hooks.ts";
export type { PiApi } from "./pi-hooks.ts";

type ClientHooks = typeof import("./in-client.ts") &
  typeof import("./opencode-hooks.ts") &
  typeof import("./pi-hooks.ts");

/** Loads what runs inside opencode and pi. */
export async function loadClientHooks(): Promise<ClientHooks> {
  return {
    ...(await import("./in-client.ts")),
    ...(await import("./opencode-hooks.ts")),
    ...(await import("./pi-hooks.ts")),
  };
}

export {
  changePlugin,
  installState,
  type PluginChange,
  type PluginClient,
  type PluginPlace,
  type PluginSettings,
  type PluginTool,
} from "./plugin.ts";
export { forgetPluginSessions, listPluginSessions, type PluginSession } from "./plugin-sessions.ts";
