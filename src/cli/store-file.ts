import { type MaintainedStore, shownAddress } from "../core/store/index.ts";
import {
  type Environment,
  exists,
  isStoreAddress,
  loadConfig,
  openStore,
  shownPath,
  storeFile,
} from "../host/index.ts";
import { noteIgnoredStore } from "../host/trust/require-trust.ts";
import type { Call, OptionSpec } from "./command.ts";

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
