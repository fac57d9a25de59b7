import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { z } from "zod";
import { ContextError } from "../../core/errors.ts";
import { didYouMean } from "../../core/text/index.ts";
import { outsideReason, systemReason } from "../../host/index.ts";
import type { ContentLayer, PackLayer, Profile } from "../packs/index.ts";
import { type CompanyRules, type LayerContent, readContentLayer } from "./content-layer.ts";

export interface LoadContentOptions<Adapter> {
  /** Lowest layer first. */
  readonly layers: readonly LayerDirectory[];
  /** The content compiled at build time. It is the lowest layer. */
  readonly embedded?: LayerContent<Adapter> | undefined;
  /** Returns the adapters of the embedded layer if the content that replaces it has none of its own. */
  readonly spareAdapters?: (() => readonly Adapter[]) | undefined;
  /** Adapters belong to a folder above this one, which passes in their schema. */
  readonly loadAdapterSchema: () => Promise<z.ZodType<AdapterFile<Adapter>>>;
}

/** The file of an adapter. It may hold only what it changes of a lower layer's adapter with the same id. */
export interface AdapterFile<Adapter> {
  readonly id: string;
  /** Returns the adapter, or the name of a key that the file must have because no lower layer sets it. */
  over(lower: Adapter | undefined): Adapter | { readonly missing: string };
}

export interface LayerDirectory {
  readonly layer: ContentLayer;
  readonly directory: string;
  /** The severity of an unknown key: an error in the user's own content, a warning in content that others maintain. */
  readonly strictness: Severity;
  /** The folder that must contain the directory, with links followed: a repository must not read files elsewhere. */
  readonly root?: string | undefined;
  /** The user named the directory, so it must exist. */
  readonly required?: boolean | undefined;
}

export interface LoadedContent<Adapter> {
  /** Input of `mergeLayers`. */
  readonly packs: readonly PackLayer[];
  /** Sorted by id. Later layers replace earlier ones. */
  readonly profiles: readonly Profile[];
  readonly adapters: readonly Adapter[];
  /** The adapters of every layer, including adapters that a later layer changes. */
  readonly everyAdapter: readonly Adapter[];
  readonly company: CompanyRules | undefined;
  /** All problems in a fixed order. If one is an error, nothing should be written. */
  readonly problems: readonly ContentProblem[];
}

/** Reads every layer. */
export async function loadContent<Adapter extends { readonly id: string }>({
  layers,
  embedded,
  spareAdapters = () => [],
  loadAdapterSchema,
}: LoadContentOptions<Adapter>): Promise<LoadedContent<Adapter>> {
  const problems: ContentProblem[] = layers.flatMap(reportDirectory);
  const inside: LayerDirectory[] = [];
  for (const layer of layers) {
    const { directory: file, root } = layer;
    const message = root === undefined ? undefined : await outsideReason(file, root);
    if (message === undefined) inside.push(layer);
    else problems.push({ file, line: 1, severity: "error", rule: "outside-link", message });
  }
  problems.push(...inside.flatMap(reportMisspelt));
  const loaded: (LayerContent<Adapter> & { layer: ContentLayer })[] = [];
  if (embedded !== undefined) loaded.push({ ...embedded, layer: "embedded" });
  const everyAdapter = () => [
    ...(loaded[0]?.layer === "embedded" ? [] : spareAdapters()),
    ...loaded.flatMap(({ adapters }) => adapters),
  ];
  for (const { layer, directory, strictness } of inside.filter(hasContent)) {
    const scope = { directory, strictness, within: layer === "user" ? undefined : directory, problems };
    const [lower, spare] = layer === "embedded" ? [[], spareAdapters()] : [lastOfEachId(everyAdapter()), []];
    loaded.push({ ...(await readContentLayer(scope, { layer, lower, spare, loadAdapterSchema })), layer });
  }
  // Packs that a profile needs and no layer has.
  const ids = loaded.flatMap(({ sources }) => sources.map(({ id }) => id)).sort();
  const missing = loaded.flatMap(({ needed = [] }) => needed).filter(({ id }) => !ids.includes(id));
  for (const { id, ...place } of missing) {
    const advice = didYouMean(id, ids) ?? `Packs are ${[...new Set(ids)].join(", ")}.`;
    problems.push({ ...place, rule: "unknown-profile-pack", message: `unknown pack "${id}". ${advice}` });
  }
  const company = loaded.find((each) => each.company !== undefined)?.company;
  problems.push(...checkRequired(company, loaded));
  return {
    packs: loaded.map(({ layer, sources }) => ({ layer, sources })),
    profiles: lastOfEachId(loaded.flatMap(({ profiles }) => profiles)),
    adapters: lastOfEachId(everyAdapter()),
    everyAdapter: everyAdapter(),
    company,
    problems,
  };
}

/** Reports required packs that no layer has, and packs that a later layer takes away or narrows. */
function checkRequired(company: CompanyRules | undefined, layers: readonly PackLayer[]): ContentProblem[] {
  const { required = [], file, lineOf } = company ?? { file: "", lineOf: () => 1 };
  return required.flatMap((id, index) => {
    const found = layers.flatMap(({ layer, sources }) =>
      sources.filter((each) => each.id === id).map((source) => ({ layer, source })),
    );
    const rule = "required-pack";
    if (found.length === 0) {
      const message = `no layer has the required pack "${id}"`;
      return [{ file, line: lineOf(["required", index]), severity: "error" as const, rule, message }];
    }
    const above = found.slice(1).filter(({ layer }) => layer !== "company");
    return above.flatMap(({ source }) => {
      const narrowed = (["globs", "overlaps"] as const).find((key) => source[key].length > 0);
      if (source.additive && narrowed === undefined) return [];
      const reason = source.additive
        ? `a project cannot set "${narrowed}" of it`
        : "a project can add to it with additive: true, but not replace it";
      const message = `the company requires the pack "${id}": ${reason}`;
      return [{ file: join(source.directory, "pack.yaml"), line: 1, severity: "error" as const, rule, message }];
    });
  });
}

const contentFolders = ["packs", "profiles", "adapters"];

function hasContent({ directory, layer }: LayerDirectory): boolean {
  if (contentFolders.some((folder) => lookAt(join(directory, folder)) === "directory")) return true;
  return layer === "company" && lookAt(join(directory, "config.yaml")) !== "nothing";
}

/** A directory that nobody named may be missing. Anything else in its place is a mistake. */
function reportDirectory(layer: LayerDirectory): ContentProblem[] {
  const isRequired = layer.required === true;
  const found = lookAt(layer.directory);
  if (found === "directory" ? !isRequired || hasContent(layer) : found === "nothing" && !isRequired) return [];
  const messages: Readonly<Record<string, string>> = {
    directory: `holds no content. It needs at least one of ${contentFolders.map((folder) => `${folder}/`).join(", ")}`,
    nothing: "no such directory",
  };
  const message = messages[found] ?? found;
  return [{ file: layer.directory, line: 1, severity: "error", rule: "no-content", message }];
}

/** Everything that commands read or write in a layer. */
const layerNames = [...contentFolders, "config.yaml", "notes.yaml", "fetched", "schemas"];

/** Reports names that are close to one that is read: nothing else would ever mention them. */
function reportMisspelt({ directory }: LayerDirectory): ContentProblem[] {
  if (lookAt(directory) !== "directory") return [];
  let names: string[] = [];
  try {
    names = readdirSync(directory).sort();
  } catch {
    // A directory that cannot be listed is reported when its content is read.
  }
  return names.flatMap((name) => {
    const meant = layerNames.includes(name) ? undefined : didYouMean(name, layerNames);
    if (meant === undefined) return [];
    const message = `is not read. ${meant}`;
    return [{ file: join(directory, name), line: 1, severity: "warning", rule: "unknown-file", message }];
  });
}

/** Returns `directory`, `nothing`, or the reason why it cannot be used. */
function lookAt(path: string): string {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return "nothing";
    return stats.isDirectory() ? "directory" : "is not a directory";
  } catch (error) {
    // Nothing exists below a file.
    return (error as NodeJS.ErrnoException).code === "ENOTDIR" ? "nothing" : systemReason(error);
  }
}

function lastOfEachId<Entry extends { readonly id: string }>(entries: readonly Entry[]): Entry[] {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  return [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** For callers that need only packs: accepts any adapter. */
export async function loadAnyAdapter(): Promise<z.ZodType<AdapterFile<{ id: string }>>> {
  const { z } = await import("zod");
  return z.looseObject({ id: z.string() }).transform(({ id }) => ({ id, over: () => ({ id }) }));
}

// The content that ships with the package. The build compiles and checks it, so a run neither parses nor validates it.

export function readEmbeddedContent<Adapter>(): LayerContent<Adapter> {
  // Relative to dist/rules/content/ and the bundled command in dist/cli/bundle/, and to src/rules/content/, where tests
  // run.
  const places = ["../../content.json", "../../../dist/content.json"];
  const paths = places.map((place) => fileURLToPath(new URL(place, import.meta.url)));
  const path = paths.find((each) => existsSync(each));
  if (path === undefined) {
    throw new ContextError("unreadable_input", "the embedded content is missing", {
      file: paths[0],
      hint: "Install plimsoll again; in a clone of its repository run npm run build.",
    });
  }
  return JSON.parse(readFileSync(path, "utf8"));
}

/** One mistake in content, for people and for `packs lint`. */
export interface ContentProblem {
  readonly file: string;
  /** 1-based. */
  readonly line: number;
  readonly severity: Severity;
  readonly rule: string;
  readonly message: string;
}

export type Severity = "error" | "warning";
