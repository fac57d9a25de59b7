import { statSync } from "node:fs";
import { join } from "node:path";
import type { z } from "zod";
import type { Layer, PackLayer, Profile } from "../../packs/index.ts";
import { systemReason } from "../files/read-text.ts";
import { outsideReason } from "../files/resolve-target.ts";
import type { ContentLayer } from "./content-layer.ts";
import type { ContentProblem, Severity } from "./content-problem.ts";

export interface LoadContentOptions<Adapter> {
  /** Lowest first. */
  readonly layers: readonly LayerDirectory[];
  /** What was compiled at build time; lies below all others. */
  readonly embedded?: ContentLayer<Adapter> | undefined;
  /** Adapters belong to a folder above this one, which passes in what they look like. */
  readonly loadAdapterSchema: () => Promise<z.ZodType<Adapter>>;
}

export interface LayerDirectory {
  readonly layer: Layer;
  readonly directory: string;
  /** How bad an unknown key is: an error in what is our own, a warning in what others maintain. */
  readonly strictness: Severity;
  /** What it must lie in, links followed: a repository has no business elsewhere. */
  readonly root?: string | undefined;
  /** The user named it, so it must be there. */
  readonly required?: boolean | undefined;
}

export interface LoadedContent<Adapter> {
  /** For `mergeLayers`. */
  readonly packs: readonly PackLayer[];
  /** By id, later layers win. */
  readonly profiles: readonly Profile[];
  readonly adapters: readonly Adapter[];
  /** Of every layer, also those that a later layer replaces. */
  readonly everyAdapter: readonly Adapter[];
  /** All of them, in a fixed order. With an error among them nothing should be written. */
  readonly problems: readonly ContentProblem[];
}

/** Reads every layer. yaml and zod are loaded only if there is a file to read: most runs use what is compiled in. */
export async function loadContent<Adapter extends { readonly id: string }>({
  layers,
  embedded,
  loadAdapterSchema,
}: LoadContentOptions<Adapter>): Promise<LoadedContent<Adapter>> {
  const outside = await outsideLayers(layers);
  const problems: ContentProblem[] = [...layers.flatMap(missingDirectory), ...outside.values()];
  const loaded: (ContentLayer<Adapter> & { layer: Layer })[] = [];
  if (embedded !== undefined) loaded.push({ ...embedded, layer: "embedded" });
  for (const { layer, directory, strictness } of layers.filter(hasContent)) {
    if (outside.has(directory)) continue;
    const { readContentLayer } = await import("./content-layer.ts");
    const scope = { directory, strictness, mayLeave: layer === "user", problems };
    loaded.push({ ...(await readContentLayer(scope, loadAdapterSchema)), layer });
  }
  return {
    packs: loaded.map(({ layer, sources }) => ({ layer, sources })),
    profiles: lastOfEachId(loaded.flatMap(({ profiles }) => profiles)),
    adapters: lastOfEachId(loaded.flatMap(({ adapters }) => adapters)),
    everyAdapter: loaded.flatMap(({ adapters }) => adapters),
    problems,
  };
}

/** By directory. */
async function outsideLayers(layers: readonly LayerDirectory[]): Promise<Map<string, ContentProblem>> {
  const found = new Map<string, ContentProblem>();
  for (const { directory, root } of layers) {
    const message = root === undefined ? undefined : await outsideReason(directory, root);
    if (message === undefined) continue;
    found.set(directory, { file: directory, line: 1, severity: "error", rule: "outside-link", message });
  }
  return found;
}

const contentFolders = ["packs", "profiles", "adapters"];

function hasContent({ directory }: LayerDirectory): boolean {
  return contentFolders.some((folder) => lookAt(join(directory, folder)) === "directory");
}

/** A directory that nobody named may be missing; something else in its place is a mistake in any case. */
function missingDirectory(layer: LayerDirectory): ContentProblem[] {
  const isRequired = layer.required === true;
  const found = lookAt(layer.directory);
  if (found === "directory" ? !isRequired || hasContent(layer) : found === "nothing" && !isRequired)
    return [];
  const messages: Readonly<Record<string, string>> = {
    directory: `holds no content: none of ${contentFolders.map((folder) => `${folder}/`).join(", ")} is in it`,
    nothing: "is no directory",
  };
  const message = messages[found] ?? found;
  return [{ file: layer.directory, line: 1, severity: "error", rule: "no-content", message }];
}

/** `directory`, `nothing`, or in a person's words what keeps it from being used. */
function lookAt(path: string): string {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return "nothing";
    return stats.isDirectory() ? "directory" : "is no directory";
  } catch (error) {
    // Below a file there is nothing.
    return (error as NodeJS.ErrnoException).code === "ENOTDIR" ? "nothing" : systemReason(error);
  }
}

function lastOfEachId<Entry extends { readonly id: string }>(entries: readonly Entry[]): Entry[] {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  return [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** For whoever looks at packs alone: nothing is asked of adapters. */
export async function loadAnyAdapter(): Promise<z.ZodType<{ id: string }>> {
  const { z } = await import("zod");
  return z.looseObject({ id: z.string() });
}
