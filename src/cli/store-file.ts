import { join, resolve } from "node:path";
import { ContextError } from "../errors.ts";
import type { Store } from "../store/index.ts";
import {
  type Environment,
  exists,
  homeDirectory,
  type LoadedConfig,
  stateDirectory,
} from "../workspace/index.ts";

export interface StorePlace {
  readonly cwd: string;
  readonly env: Environment;
  readonly config: LoadedConfig;
}

/** The file of the store: the one that was named on the command line, else by PLIMSOLL_STORE, else in the user's configuration, else the
 *  default one. Never a project's: that would choose where state goes. */
export function storeFile(option: string | undefined, { cwd, env, config }: StorePlace): string {
  const named = option ?? (env.PLIMSOLL_STORE || undefined);
  if (named !== undefined) return resolve(cwd, named);
  const { store } = config.values;
  if (store === "default") return join(stateDirectory(env), "state.db");
  const source = config.sources.store ?? "";
  if (/^\w+:\/\//.test(store)) {
    throw new ContextError("invalid_config", `the store ${store} cannot be used here (${source})`, {
      hint: "Name a file, or leave it out.",
    });
  }
  return resolve(homeDirectory(env), store.replace(/^~\//, ""));
}

/** Opens the store for as long as the work takes. One that is not there is made. */
export async function withStore<Result>(
  file: string,
  work: (store: Store) => Promise<Result>,
): Promise<Result> {
  const { openSqliteStore } = await import("../store/sqlite.ts");
  const store = await openSqliteStore({ path: file });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** Undefined where there is no store: looking makes none. */
export async function lookInStore<Result>(
  file: string,
  look: (store: Store) => Promise<Result>,
): Promise<Result | undefined> {
  return (await exists(file)) ? withStore(file, look) : undefined;
}
