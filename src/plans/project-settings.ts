import { basename, dirname, join } from "node:path";
import {
  exists,
  isInside,
  listFiles,
  loadConfig,
  type PowerfulSetting,
  type ProjectPlace,
  trustRecord,
} from "../host/index.ts";
import { readProjectFetches } from "../rules/index.ts";
import { loadNebula } from "./nebula/index.ts";
import { nebulaSettings } from "./open-nebula.ts";

/** Returns all settings of the project that need trust, trusted or not. */
export async function readProjectSettings(
  folder: string,
  { root, cwd, env }: ProjectPlace & { readonly cwd: string },
): Promise<PowerfulSetting[]> {
  const { powerful } = await loadConfig({ cwd: folder, env: { ...env, PLIMSOLL_TRUST: "1" } });
  const settings = [...powerful, ...(await readProjectFetches(root))];
  // A relative working directory starts where nebulas are run.
  const from = isInside(cwd, root) || (await isNebula(folder)) ? cwd : root;
  for (const directory of await nebulasOf({ root, env }, folder)) {
    const loaded = await loadNebula(directory);
    settings.push(...(await nebulaSettings(loaded, { cwd: from, env })));
  }
  return settings;
}

function isNebula(folder: string): Promise<boolean> {
  return exists(join(folder, "nebula.toml"));
}

/** Returns nebulas that git does not ignore, the named one, and those that are trusted already. */
async function nebulasOf(place: ProjectPlace, folder: string): Promise<Set<string>> {
  const { files } = await listFiles(place.root);
  const found = files.filter((file) => basename(file) === "nebula.toml").map((file) => dirname(file));
  const known = (await trustRecord.find(place))?.settings ?? [];
  for (const other of new Set([folder, ...known.map(({ file }) => dirname(join(place.root, file)))]))
    if (await isNebula(other)) found.push(other);
  return new Set(found);
}
