/** The plugin of pi: one extension that it loads by itself (0.73, 2026-11). */
import { isAbsolute, join, relative } from "node:path";
import { hookScript, scriptSettings } from "./hook-script.ts";
import { ownedScript, type PluginClient, type PluginPlace } from "./plugin.ts";

export const pi: PluginClient = {
  id: "pi",
  program: "pi",
  home: ".pi",
  canTrim: true,
  canLeaveOutImages: true,
  async files(place, settings) {
    return [ownedScript(join(extensionFolder(place), "plimsoll.js"), hookScript({ ending, place, settings }))];
  },
  installedSettings: (place) => scriptSettings(join(extensionFolder(place), "plimsoll.js")),
  notes: ["pi loads the extension at its next start."],
  async check(place) {
    const { checkClient } = await import("./check-client.ts");
    const script = relative(place.root, join(extensionFolder(place), "plimsoll.js"));
    return checkClient("pi", place, {
      program: "pi",
      installed: { [script]: ".pi/agent/extensions/plimsoll.js" },
      args: ["-p", "--provider", "check", "--model", "claude-sonnet-4-5", "Read the file."],
      env: () => ({ PI_OFFLINE: "1", PI_SKIP_VERSION_CHECK: "1", PI_TELEMETRY: "0" }),
      files: (url) => ({
        ".pi/agent/models.json": JSON.stringify({
          providers: {
            check: {
              baseUrl: url,
              api: "anthropic-messages",
              apiKey: "none",
              models: [{ id: "claude-sonnet-4-5", name: "check", contextWindow: 200_000, maxTokens: 8_000 }],
            },
          },
        }),
      }),
      call: (file) => ({ name: "read", input: { path: file } }),
    });
  },
};

const ending = `export default async (pi) => {
  try {
    await withHooks((hooks) => hooks.openExtension(settings, pi));
  } catch {
    // The session goes on without us.
  }
};
`;

function extensionFolder({ scope, root, env }: PluginPlace): string {
  if (scope === "project") return join(root, ".pi/extensions");
  const { PI_CODING_AGENT_DIR: folder = "" } = env;
  return join(isAbsolute(folder) ? folder : join(root, ".pi/agent"), "extensions");
}
