import type { Store } from "../../store/index.ts";
import { exists, loadConfig } from "../../workspace/index.ts";
import type { Call, OptionSpec } from "../command.ts";
import { storeFile } from "../store-file.ts";

export const storeOptions: { readonly store: OptionSpec & { readonly value: string } } = {
  store: { value: "FILE", summary: "where sessions are kept (default: the configuration's)" },
};

export interface FoundStore<Result> {
  readonly file: string;
  /** Absent where there is no store. */
  readonly result?: Result;
}

/** Looks into the store that sessions are kept in. Looking makes none: that a session was never there must not leave a trace. */
export async function withSessions<Result>(
  { options, cwd, env }: Call<{ readonly store?: string | undefined }>,
  read: (store: Store) => Promise<Result>,
): Promise<FoundStore<Result>> {
  const file = storeFile(options.store, { cwd, env, config: await loadConfig({ cwd, env }) });
  if (!(await exists(file))) return { file };
  const { openSqliteStore } = await import("../../store/sqlite.ts");
  const store = await openSqliteStore({ path: file });
  try {
    return { file, result: await read(store) };
  } finally {
    await store.close();
  }
}
