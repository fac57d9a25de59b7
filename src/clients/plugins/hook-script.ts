/** Writes the plugin file of a client that loads JavaScript into its own process. The file only finds plimsoll, so it
 *  stays the same when plimsoll is updated. Without plimsoll it does nothing. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isPlainObject, readJson } from "../../core/text/index.ts";
import { readForeignBytes } from "../../host/index.ts";
import type { HookSettings } from "./in-client.ts";
import { type PluginPlace, type PluginSettings, readPluginSettings } from "./plugin.ts";

/** `ending` has the last lines, which pass the hooks to the client. `withHooks` and `settings` are in scope there. */
export function hookScript({
  ending,
  place,
  settings,
}: {
  readonly ending: string;
  readonly place: PluginPlace;
  readonly settings: PluginSettings;
}): string {
  const { maxResultTokens, deltas, trim, images } = settings;
  const chosen: HookSettings = { maxResultTokens, ...(!deltas && { deltas }), trim, images };
  // This module is in src/clients/plugins/ or in dist/cli/bundle/.
  const places = ["./plugin-hooks.js", "../../../dist/cli/bundle/plugin-hooks.js"];
  const own = places.map((path) => fileURLToPath(new URL(path, import.meta.url))).find((path) => existsSync(path));
  // A project's file may be shared with other computers.
  const installed = place.scope === "user" && own !== undefined ? [own] : [];
  return `import * as fs from "node:fs";
import * as path from "node:path";
import * as url from "node:url";

const settings = ${JSON.stringify(chosen)};

/** Where plimsoll is: the command on PATH, or where it was at install. A project must not bring its own. */
function findHooks() {
  const folders = (process.env.PATH ?? "").split(path.delimiter).filter((folder) => path.isAbsolute(folder));
  const files = folders.flatMap((folder) => {
    const command = path.join(folder, "plimsoll");
    const own = fs.existsSync(command) ? [path.dirname(fs.realpathSync(command))] : [];
    return [...own, path.join(folder, "node_modules/plimsoll/dist/cli")];
  });
  const hooks = files.map((folder) => path.join(folder, "bundle/plugin-hooks.js"));
  return [...hooks, ...${JSON.stringify(installed)}].find((file) => fs.existsSync(file));
}

/** The client starts without us if this takes too long. */
async function withHooks(use) {
  const file = findHooks();
  if (file === undefined) throw new Error("plimsoll is not installed");
  const late = new Promise((_, reject) => {
    setTimeout(() => reject(new Error("plimsoll does not answer")), 3000).unref?.();
  });
  return Promise.race([import(url.pathToFileURL(file).href).then(use), late]);
}

${ending}`;
}

/** Returns the settings in a script that `hookScript` wrote. */
export function scriptSettings(path: string): PluginSettings | undefined {
  const script = readForeignBytes(path, { refuseLink: true }) ?? "";
  const [, settings] = /^const settings = (\{.*\});$/m.exec(script) ?? [];
  return readPluginSettings(readJson(settings, isPlainObject));
}
