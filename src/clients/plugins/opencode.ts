/** The plugin of opencode: one file that it loads by itself (1.18, 2026-11). */
import { existsSync } from "node:fs";
import { isAbsolute, join, relative } from "node:path";
import { toByteString } from "../../core/text/index.ts";
import { hookScript, scriptSettings } from "./hook-script.ts";
import { formatJson, ownedScript, type PluginClient, type PluginFile, type PluginPlace } from "./plugin.ts";

export const openCode: PluginClient = {
  id: "opencode",
  program: "opencode",
  home: ".config/opencode",
  canTrim: true,
  canLeaveOutImages: true,
  async files(place, settings) {
    const folder = configFolder(place);
    return [
      ownedScript(join(folder, "plugins/plimsoll.js"), hookScript({ ending, place, settings })),
      ...quickStart(folder),
    ];
  },
  installedSettings: (place) => scriptSettings(join(configFolder(place), "plugins/plimsoll.js")),
  notes: ["opencode loads the plugin at its next start."],
  async check(place) {
    const { checkClient } = await import("./check-client.ts");
    const script = relative(place.root, join(configFolder(place), "plugins/plimsoll.js"));
    return checkClient("opencode", place, {
      program: "opencode",
      installed: { [script]: ".config/opencode/plugins/plimsoll.js" },
      args: ["run", "-m", "check/claude-sonnet-4-5", "Read the file."],
      env: () => ({
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
        OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
        OPENCODE_DISABLE_MODELS_FETCH: "1",
      }),
      files: (url) => ({
        ".config/opencode/opencode.json": JSON.stringify({
          provider: {
            check: {
              npm: "@ai-sdk/anthropic",
              options: { baseURL: `${url}/v1`, apiKey: "none" },
              models: { "claude-sonnet-4-5": {} },
            },
          },
        }),
        ".config/opencode/package-lock.json": lockFile,
        ".config/opencode/node_modules/.plimsoll": "",
      }),
      call: (file) => ({ name: "read", input: { filePath: file } }),
    });
  },
};

const ending = `export const Plimsoll = async () => {
  try {
    return await withHooks((hooks) => hooks.openHooks(settings));
  } catch {
    return {};
  }
};
`;

function configFolder({ scope, root, env }: PluginPlace): string {
  if (scope === "project") return join(root, ".opencode");
  const { XDG_CONFIG_HOME: base = "" } = env;
  return join(isAbsolute(base) ? base : join(root, ".config"), "opencode");
}

/** Keeps opencode from installing its own package beside our plugin, which takes 70 s at every start without a network. It
 *  does not install if it finds `node_modules` and a lock file that names the package. Our plugin does not need it. */
function quickStart(folder: string): PluginFile[] {
  const marker = join(folder, "node_modules/.plimsoll");
  const isOpen = !existsSync(join(folder, "node_modules")) && !existsSync(join(folder, "package.json"));
  if (!isOpen && !existsSync(marker)) return [];
  const about = "Written by plimsoll plugin install. Remove it with plimsoll plugin uninstall.\n";
  return [missingFile(join(folder, "package-lock.json"), lockFile), missingFile(marker, about)];
}

const lockFile: string = formatJson({
  name: "opencode",
  lockfileVersion: 3,
  requires: true,
  packages: { "": { dependencies: { "@opencode-ai/plugin": "*" } } },
});

/** A file that we write only if it is missing, and remove only as we wrote it. */
function missingFile(path: string, text: string): PluginFile {
  const bytes = toByteString(text);
  return {
    path,
    install: (current) => current ?? bytes,
    uninstall: (current) => (current === bytes ? undefined : current),
  };
}
