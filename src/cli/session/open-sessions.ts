import type { Store } from "../../store/index.ts";
import { loadConfig } from "../../workspace/index.ts";
import type { Call, OptionSpec } from "../command.ts";
import { lookInStore, storeFile } from "../store-file.ts";
import { noteIgnoredStore } from "../trust.ts";

export const storeOptions: { readonly store: OptionSpec & { readonly value: string } } = {
  store: {
    value: "FILE",
    summary: "where sessions are kept (default: PLIMSOLL_STORE, else the configuration's)",
  },
};

export interface FoundStore<Result> {
  readonly file: string;
  /** Absent where there is no store. */
  readonly result: Result | undefined;
}

/** Looks into the store that sessions are kept in. */
export async function withSessions<Result>(
  call: Call<{ readonly store?: string | undefined }>,
  read: (store: Store) => Promise<Result>,
): Promise<FoundStore<Result>> {
  const { options, cwd, env } = call;
  const config = await loadConfig({ cwd, env });
  noteIgnoredStore(config, call);
  const file = storeFile(options.store, { cwd, env, config });
  return { file, result: await lookInStore(file, read) };
}
