/** Where a command keeps its state. */
import { join, resolve } from "node:path";
import { ContextError } from "../core/errors.ts";
import type { LoadedConfig } from "./config/load-config.ts";
import { type Environment, homeDirectory, stateDirectory } from "./directories.ts";
import { isStoreAddress } from "./store/open-store.ts";

interface StorePlace {
  readonly cwd: string;
  readonly env: Environment;
  readonly config: LoadedConfig;
}

/** Returns the store's file or address: from the command line, or else PLIMSOLL_STORE, or else the user's configuration, or
 *  else the default. A project cannot choose where state goes. */
export function storeFile(option: string | undefined, { cwd, env, config }: StorePlace): string {
  const named = option ?? (env.PLIMSOLL_STORE || undefined);
  if (named !== undefined) return isStoreAddress(named) ? named : resolve(cwd, named);
  const { store } = config.values;
  if (store === "default") return join(stateDirectory(env), "state.db");
  return isAddressIn(config, store) ? store : resolve(homeDirectory(env), store.replace(/^~\//, ""));
}

/** Adds the line of the configuration to an error. */
function isAddressIn({ sources }: LoadedConfig, store: string): boolean {
  try {
    return isStoreAddress(store);
  } catch (error) {
    if (!(error instanceof ContextError)) throw error;
    const { code, message, hint } = error;
    throw new ContextError(code, `${message} (${sources.store})`, { hint, cause: error });
  }
}
