/** Reads and changes the fabric of a nebula from outside of a run: as a person, or inside a running phase. */
import { basename, join, relative, resolve } from "node:path";
import { ContextError, usageError } from "../../core/errors.ts";
import { type Caller, exists, lookInStore, storePath, withStore } from "../../host/index.ts";
import { emptyFabric, type Fabric, type FabricState, type Reporter } from "../compose/index.ts";
import { readNebulaName } from "./load-nebula.ts";
import type { Nebula } from "./nebula.ts";
import { storedKey } from "./nebula-key.ts";
import { fabricOf, openNebulaRecord } from "./nebula-record.ts";
import { person } from "./record-changes.ts";

/** Which nebula is meant, and where its state is. */
interface FabricCall extends Caller {
  readonly options: { readonly nebula?: string | undefined; readonly store?: string | undefined };
}

/** Reads the fabric of a nebula. Does not create a store. */
export async function readFabric(call: FabricCall): Promise<FabricState> {
  const nebula = await openNebula(call);
  const record = await lookInStore(await storePath(call.options.store, call), async (store) =>
    openNebulaRecord(store, await storedKey(store, nebula, call.env)).read(),
  );
  if (record !== undefined) return fabricOf(record);
  return { phases: [], entanglements: [], claims: [], discoveries: [], notes: [] };
}

/** Changes the fabric in one step, even if other processes change it too. The reporter is the running phase, or else a
 *  person. Mistakes in the change are usage errors. */
export async function changeFabric(
  call: FabricCall,
  change: (fabric: Fabric, reporter: Reporter) => Fabric,
): Promise<{ readonly before: Fabric; readonly after: Fabric }> {
  const nebula = await openNebula(call);
  const reporter = { from: call.env.PLIMSOLL_PHASE || person, date: new Date().toISOString().slice(0, 10) };
  const path = await storePath(call.options.store, call);
  // A refused change must not create a store.
  if (!(await exists(path))) checked(() => change(emptyFabric, reporter));
  let before = emptyFabric;
  const record = await withStore(path, async (store) =>
    openNebulaRecord(store, await storedKey(store, nebula, call.env)).change((stored) => {
      before = stored.fabric;
      const fabric = checked(() => change(before, reporter));
      if (fabric === before) return stored;
      const directory = stored.directory || nebula.directory;
      return { ...stored, name: stored.name || basename(nebula.directory), directory, fabric };
    }),
  );
  return { before, after: record.fabric };
}

/** Finds the nebula by --nebula, or inside a running phase by the environment. */
async function openNebula({ options, cwd, env }: FabricCall): Promise<Pick<Nebula, "directory" | "name">> {
  const folder = options.nebula ?? (env.PLIMSOLL_NEBULA || undefined);
  if (folder === undefined) {
    throw usageError("no nebula is named", "Name its folder with --nebula DIR. Inside a running phase it is known.");
  }
  const directory = resolve(cwd, folder);
  const manifest = join(directory, "nebula.toml");
  if (await exists(manifest)) return { directory, name: await readNebulaName(directory) };
  throw new ContextError("unreadable_input", "no such file or directory", {
    file: relative(cwd, manifest),
    hint: "A nebula is a folder with nebula.toml and phase files, *.md.",
  });
}

function checked<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ContextError) || error.code !== "invalid_argument") throw error;
    throw new ContextError("usage", error.message, { hint: error.hint, cause: error });
  }
}
