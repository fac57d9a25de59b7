/** Where a command keeps its state. */
import { join, resolve } from "node:path";
import { ContextError } from "../core/errors.ts";
import { type MaintainedStore, shownAddress } from "../core/store/index.ts";
import { type LoadedConfig, loadConfig } from "./config/load-config.ts";
import { type Environment, homeDirectory, stateDirectory } from "./directories.ts";
import { exists } from "./files/paths.ts";
import type { Caller } from "./print/output.ts";
import { shownPath } from "./print/table.ts";
import { noteIgnoredStore } from "./trust/trusted.ts";

/** Returns the store's file or address: from the command line, or else PLIMSOLL_STORE, or else the user's configuration, or
 *  else the default. A project cannot choose where state goes. */
export function storeFile(
  option: string | undefined,
  { cwd, env, config }: { readonly cwd: string; readonly env: Environment; readonly config: LoadedConfig },
): string {
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

/** Returns the store's file or address for a command, with a note if the project's store setting is ignored. */
export async function storePath(option: string | undefined, caller: Caller): Promise<string> {
  const { cwd, env } = caller;
  const config = await loadConfig({ cwd, env });
  noteIgnoredStore(config, caller);
  return storeFile(option, { cwd, env, config });
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

/** Opens the store at a place: the path of a SQLite file, or the address of a PostgreSQL database. Loads the driver that
 *  it needs. */
export async function openStore({
  place,
  ...options
}: {
  readonly place: string;
  readonly waitMs?: number | undefined;
  readonly now?: (() => number) | undefined;
}): Promise<MaintainedStore> {
  if (isStoreAddress(place)) {
    const { openMaintainedPostgres } = await import("./store/postgres.ts");
    return openMaintainedPostgres({ url: place, ...options });
  }
  const { openMaintainedSqlite } = await import("./store/sqlite.ts");
  return openMaintainedSqlite({ path: place, ...options });
}

/** Whether a place is the address of a database and not a file. Throws for an address that no driver understands. */
export function isStoreAddress(place: string): boolean {
  if (/^postgres(ql)?:\/\//.test(place)) return true;
  const [, scheme] = /^([a-z][a-z0-9+.-]+):\/\//i.exec(place) ?? [];
  if (scheme === undefined) return false;
  throw new ContextError("invalid_config", `no store has addresses with ${scheme}://`, {
    hint: "Name a file, or postgres://USER@HOST/DATABASE.",
  });
}
