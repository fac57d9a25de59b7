/** Brings what comes from elsewhere to this machine: the company's packs, then the texts behind the markers of all packs. */
import { join } from "node:path";
import type { Config } from "../config/config.ts";
import type { ContentProblem } from "../content/content-problem.ts";
import { readEmbeddedContent } from "../content/embedded-content.ts";
import { type LayerDirectory, loadAnyAdapter, loadContent } from "../content/load-content.ts";
import { configDirectory, type Environment } from "../directories.ts";
import { untrustedFetches } from "../trust/project-settings.ts";
import type { PowerfulSetting } from "../trust/trusted.ts";
import { type CompanySync, syncCompany } from "./company.ts";
import { shownSource } from "./company-source.ts";
import { syncTexts, type TextSync } from "./sync-texts.ts";

export interface SyncOptions {
  readonly config: Config;
  /** The project's root. */
  readonly root: string;
  readonly env: Environment;
  /** A content directory in place of the embedded one. */
  readonly contentDirectory?: string | undefined;
  /** Fetch what is not due yet, too. */
  readonly force?: boolean | undefined;
  /** Also from machines of this network. */
  readonly allowPrivate?: boolean | undefined;
  readonly progress?: ((text: string) => void) | undefined;
}

export interface SyncReport {
  readonly company: CompanySync | undefined;
  readonly texts: readonly TextSync[];
  /** Addresses of the project's packs that nobody has trusted, and that were not fetched. */
  readonly leftOut: readonly PowerfulSetting[];
  /** What is wrong with the packs that were looked through, and with their markers. */
  readonly problems: readonly ContentProblem[];
}

/** One thing that fails never stops the others: each says what became of it. */
export async function sync(options: SyncOptions): Promise<SyncReport> {
  const { config, env, force, allowPrivate, progress, contentDirectory } = options;
  if (config.company !== undefined)
    progress?.(`fetching the company's packs from ${shownSource(config.company.source)}`);
  const company = config.company === undefined ? undefined : await syncCompany(config.company, options);
  const { packs, problems } = await loadContent({
    layers: layersOf(options, company?.directory),
    embedded: contentDirectory === undefined ? readEmbeddedContent<{ id: string }>() : undefined,
    loadAdapterSchema: loadAnyAdapter,
  });
  const leftOut = await untrustedFetches(packs, options);
  const { texts, warnings } = await syncTexts(packs, { env, leftOut, force, allowPrivate, progress });
  return { company, texts, leftOut, problems: [...problems, ...warnings] };
}

/** Every layer, whatever scope it counts in: one sync serves them all. */
function layersOf(
  { root, env, contentDirectory }: SyncOptions,
  company: string | undefined,
): LayerDirectory[] {
  const layers: LayerDirectory[] = [
    { layer: "user", directory: configDirectory(env), strictness: "error" },
    { layer: "project", directory: join(root, ".plimsoll"), root, strictness: "error" },
  ];
  if (company !== undefined)
    layers.unshift({ layer: "company", directory: company, strictness: "warning", required: true });
  if (contentDirectory !== undefined)
    layers.unshift({ layer: "embedded", directory: contentDirectory, strictness: "warning", required: true });
  return layers;
}
