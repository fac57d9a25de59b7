/** What the plugin files of opencode and pi import: the build makes dist/cli/bundle/plugin-hooks.js of it. It runs inside
 *  the client, so it writes to no stream. */

import type { Store } from "../core/store/index.ts";
import { loadConfig, openStore, storeFile } from "../host/index.ts";
import { type HookSettings, loadClientHooks, type OpenCodeHooks, type PiApi } from "./index.ts";

export async function openHooks(settings: HookSettings): Promise<OpenCodeHooks> {
  const { openCodeHooks, createInClient } = await loadClientHooks();
  return openCodeHooks(createInClient({ client: "opencode", settings, openStore: openOwnStore }));
}

export async function openExtension(settings: HookSettings, pi: PiApi): Promise<void> {
  const { registerPi, createInClient } = await loadClientHooks();
  registerPi(pi, createInClient({ client: "pi", settings, openStore: openOwnStore }));
}

async function openOwnStore(): Promise<Store> {
  const surroundings = { cwd: process.cwd(), env: process.env };
  const place = storeFile(undefined, { ...surroundings, config: await loadConfig(surroundings) });
  // A store that is busy for longer counts as broken, and the result stays as it is.
  const waitMs = 40;
  return openStore({ place, waitMs });
}
