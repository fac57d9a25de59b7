/** Where the fabric is that a command is about, and who changes it: a running phase knows both from its environment. */
import { basename, join, relative, resolve } from "node:path";
import { fabricOf, nebulaKey, type OpenNebulaRecord, openNebulaRecord, person } from "../../agent/index.ts";
import { emptyFabric, type Fabric, type FabricState, type Reporter } from "../../compose/index.ts";
import { ContextError } from "../../errors.ts";
import type { Store } from "../../store/index.ts";
import { exists, loadConfig } from "../../workspace/index.ts";
import type { Call, CommandResult, OptionSpec } from "../command.ts";
import { lookInStore, storeFile, withStore } from "../store-file.ts";
import { noteIgnoredStore } from "../trust.ts";

type PathOption = OptionSpec & { readonly value: string };

export const fabricOptions: { readonly nebula: PathOption; readonly store: PathOption } = {
  nebula: {
    value: "DIR",
    summary: "folder of the nebula (default: PLIMSOLL_NEBULA, which every running phase has)",
  },
  store: {
    value: "FILE",
    summary: "where its state is kept (default: PLIMSOLL_STORE, else the configuration's)",
  },
};

export type FabricCall = Call<{ readonly nebula?: string | undefined; readonly store?: string | undefined }>;

/** The fabric as it is now; undefined where nothing was ever written of the nebula. Looking makes no store. */
export async function readFabric(call: FabricCall): Promise<FabricState | undefined> {
  const directory = await nebulaDirectory(call);
  const record = await lookInStore(await storePath(call), (store) => recordOf(directory, store).read());
  return record === undefined ? undefined : fabricOf(record);
}

/** Changes the fabric as one step, whoever else changes it at that moment. The reporter is the running phase, else a person. A mistake
 *  that the change finds is wrong usage. */
export async function changeFabric(
  call: FabricCall,
  change: (fabric: Fabric, reporter: Reporter) => Fabric,
): Promise<Fabric> {
  const directory = await nebulaDirectory(call);
  const reporter = { from: call.env.PLIMSOLL_PHASE || person, date: new Date().toISOString().slice(0, 10) };
  const path = await storePath(call);
  // What is refused must not leave a store behind.
  if (!(await exists(path))) checked(() => change(emptyFabric, reporter));
  const record = await withStore(path, (store) =>
    recordOf(directory, store).change((before) => {
      const fabric = checked(() => change(before.fabric, reporter));
      if (fabric === before.fabric) return before;
      const { name, directory: known, ...rest } = before;
      return { ...rest, name: name || basename(directory), directory: known || directory, fabric };
    }),
  );
  return record.fabric;
}

export interface ToldEntry {
  readonly entry: object | undefined;
  readonly id: string;
  /** What stands in for the id inside of a phase; absent where a note has told it. */
  readonly note?: string | undefined;
}

/** The id of an entry as a result. Inside of a phase as a note: there stdout may be what the agent answers. */
export function tellId({ env, output }: FabricCall, { entry, id, note }: ToldEntry): CommandResult {
  if (!env.PLIMSOLL_PHASE) return { json: entry, text: id };
  if (note !== undefined && !output.json) output.note(note);
  return { json: entry, text: "" };
}

async function nebulaDirectory({ options, cwd, env }: FabricCall): Promise<string> {
  const named = options.nebula ?? (env.PLIMSOLL_NEBULA || undefined);
  if (named === undefined) {
    throw new ContextError("usage", "it is not said which nebula the fabric is of", {
      hint: "Name its folder with --nebula DIR. Inside of a running phase it is known.",
    });
  }
  const directory = resolve(cwd, named);
  const manifest = join(directory, "nebula.toml");
  if (await exists(manifest)) return directory;
  throw new ContextError("unreadable_input", "no such file or directory", {
    file: relative(cwd, manifest),
    hint: "A nebula is a folder with nebula.toml and phase files, *.md.",
  });
}

/** A running phase knows it from its environment. */
export async function storePath(call: Call<{ readonly store?: string | undefined }>): Promise<string> {
  const { options, cwd, env } = call;
  const config = await loadConfig({ cwd, env });
  noteIgnoredStore(config, call);
  return storeFile(options.store, { cwd, env, config });
}

function recordOf(directory: string, store: Store): OpenNebulaRecord {
  return openNebulaRecord(store, nebulaKey(directory));
}

function checked<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ContextError) || error.code !== "invalid_argument") throw error;
    throw new ContextError("usage", error.message, { hint: error.hint, cause: error });
  }
}
