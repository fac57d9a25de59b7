/** The addresses that a project's own packs fetch are powerful settings: nothing is fetched before a person trusts them. */
import { join } from "node:path";
import { findUntrusted, type PowerfulSetting, type ProjectPlace, powerfulSetting } from "../../host/index.ts";
import { loadAnyAdapter, loadContent } from "../content/load-content.ts";
import type { PackLayer } from "../packs/index.ts";
import { findFetchMarkers } from "../packs/index.ts";

/** Returns the addresses that the project's own packs fetch and that nobody has trusted. */
export async function untrustedFetches(
  layers: readonly PackLayer[],
  place: ProjectPlace,
): Promise<readonly PowerfulSetting[]> {
  return findUntrusted(fetchSettings(layers, place.root), place);
}

/** Returns all addresses that the packs of a project fetch, trusted or not. Packs with mistakes are not read. */
export async function readProjectFetches(root: string): Promise<PowerfulSetting[]> {
  const { packs } = await loadContent({
    layers: [{ layer: "project", directory: join(root, ".plimsoll"), root, strictness: "warning" }],
    loadAdapterSchema: loadAnyAdapter,
  });
  return fetchSettings(packs, root);
}

function fetchSettings(layers: readonly PackLayer[], root: string): PowerfulSetting[] {
  const sources = layers.filter(({ layer }) => layer === "project").flatMap((layer) => layer.sources);
  return sources.flatMap(({ directory, texts }) =>
    Object.entries(texts).flatMap(([name, text]) =>
      findFetchMarkers(text).markers.map(({ line, url }) =>
        powerfulSetting({ root, file: join(directory, name), line, key: "sync:fetch", value: url }),
      ),
    ),
  );
}
