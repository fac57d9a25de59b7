/** The powerful settings of a project's configuration and packs. Those of a nebula are read with it. */
import { isAbsolute, join } from "node:path";
import type { PackLayer } from "../../packs/index.ts";
import { findFetchMarkers } from "../../text/index.ts";
import type { ConfigPart } from "../config/config.ts";
import { loadAnyAdapter, loadContent } from "../content/load-content.ts";
import { followLinks } from "../files/resolve-target.ts";
import { readCompanySource } from "../sync/company-source.ts";
import { type PowerfulSetting, type ProjectPlace, powerfulSetting, untrustedOf } from "./trusted.ts";

export interface ProjectConfig {
  /** Absolute. */
  readonly path: string;
  readonly values: ConfigPart;
  lineOf(path: readonly PropertyKey[]): number;
}

/** The powerful settings of a project. */
export interface Judged {
  readonly powerful: readonly PowerfulSetting[];
  /** Those among them that nobody has trusted: they count for nothing. */
  readonly leftOut: readonly PowerfulSetting[];
}

/** What a project's configuration sets with these keys. */
export async function judgeConfig(
  { path, values, lineOf }: ProjectConfig,
  keys: readonly string[],
  place: ProjectPlace,
): Promise<Judged> {
  const target = keys.includes("company") ? await companyTarget(values, place) : undefined;
  const powerful = keys.map((key) =>
    powerfulSetting({
      ...{ root: place.root, file: path, line: lineOf([key]), key, value: values[key as keyof ConfigPart] },
      target: key === "company" ? target : undefined,
    }),
  );
  return { powerful, leftOut: await untrustedOf(powerful, place) };
}

/** A directory is trusted, not its name: a link of the repository could lead the name elsewhere tomorrow. */
async function companyTarget({ company }: ConfigPart, place: ProjectPlace): Promise<string | undefined> {
  if (company?.source === undefined) return undefined;
  try {
    const source = readCompanySource({ ...company, source: company.source }, place);
    const path = source.kind === "directory" ? source.path : source.url;
    return isAbsolute(path) ? await followLinks(path) : undefined;
  } catch {
    // What is wrong with it is told to whoever uses it.
    return undefined;
  }
}

/** The addresses that the packs of the project's own layer fetch, and that nobody has trusted. */
export async function untrustedFetches(
  layers: readonly PackLayer[],
  place: ProjectPlace,
): Promise<readonly PowerfulSetting[]> {
  return untrustedOf(fetchSettings(layers, place.root), place);
}

/** All that the packs of a project fetch, trusted or not. A pack with mistakes is not read, and asks when it can be. */
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
