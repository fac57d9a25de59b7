import { join, resolve } from "node:path";
import { ContextError } from "../errors.ts";
import { isStoreAddress, type MaintainedStore, openStore, shownAddress } from "../store/index.ts";
import {
  type Environment,
  exists,
  homeDirectory,
  type LoadedConfig,
  loadConfig,
  stateDirectory,
} from "../workspace/index.ts";
import type { Call, OptionSpec } from "./command.ts";
import { shownPath } from "./table.ts";
import { noteIgnoredStore } from "./trust.ts";

/** The option of every command that keeps its state in a store. */
export const storeOptions: { readonly store: OptionSpec & { readonly value: string } } = {
  store: {
    value: "PLACE",
    summary: "file of the store, or postgres://… (default: PLIMSOLL_STORE, or else from the configuration)",
  },
};

/** Returns the store's file or address for a command, with a note if the project's store setting is ignored. */
export async function storePath(call: Call<{ readonly store?: string | undefined }>): Promise<string> {
  const { options, cwd, env } = call;
  const config = await loadConfig({ cwd, env });
  noteIgnoredStore(config, call);
  return storeFile(options.store, { cwd, env, config });
}

export interface StorePlace {
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

/** Returns a store's place for messages, without a password. */
export function shownStore(place: string, cwd: string, env: Environment): string {
  return isStoreAddress(place) ? shownAddress(place) : shownPath(place, cwd, env);
}

/** Opens the store during `work`, and creates it if needed. */
export async function withStore<Result>(
  place: string,
  work: (store: MaintainedStore) => Promise<Result>,
): Promise<Result> {
  const store = await openStore({ place });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** Opens the store only if its file exists, or if it is in a database. Returns undefined otherwise. */
export async function lookInStore<Result>(
  place: string,
  look: (store: MaintainedStore) => Promise<Result>,
): Promise<Result | undefined> {
  return isStoreAddress(place) || (await exists(place)) ? withStore(place, look) : undefined;
}
