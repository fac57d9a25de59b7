import { join, resolve } from "node:path";
import { ContextError } from "../errors.ts";
import type { Store } from "../store/index.ts";
import {
  type Environment,
  exists,
  homeDirectory,
  type LoadedConfig,
  projectRoot,
  stateDirectory,
} from "../workspace/index.ts";

export interface StorePlace {
  readonly cwd: string;
  readonly env: Environment;
  readonly config: LoadedConfig;
}

/** The file of the store: the one that was named on the command line, else the configuration's, else the user's own. */
export function storeFile(named: string | undefined, { cwd, env, config }: StorePlace): string {
  if (named !== undefined) return resolve(cwd, named);
  const { store } = config.values;
  if (store === "default") return join(stateDirectory(env), "state.db");
  const source = config.sources.store ?? "";
  if (/^\w+:\/\//.test(store)) {
    throw new ContextError("invalid_config", `the store ${store} cannot be used here (${source})`, {
      hint: "Name a file, or leave it out.",
    });
  }
  const home = homeDirectory(env);
  if (store.startsWith("~/")) return join(home, store.slice(2));
  // Not from where one stands: a project has one store, whichever of its folders a command runs in.
  return resolve(source.startsWith("user ") ? home : projectRoot(cwd, home), store);
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
