/** Fetches content from elsewhere: the company's packs into the cache, then the texts for the fetch markers of all packs
 *  into the folders where they are pinned. */

import { join } from "node:path";
import { type FetchMarker, findFetchMarkers } from "../../core/text/index.ts";
import type { Config, PowerfulSetting } from "../../host/index.ts";
import { configDirectory, type Environment, withoutPasswords } from "../../host/index.ts";
import {
  type ContentProblem,
  type LayerDirectory,
  loadAnyAdapter,
  loadContent,
  readEmbeddedContent,
} from "../content/load-content.ts";
import type { PackLayer, PackSource } from "../packs/index.ts";
import { type CompanySync, syncCompany } from "./company.ts";
import { fetchText } from "./fetch-text.ts";
import {
  openPins,
  type Pin,
  type PinFolder,
  type PinnedText,
  type Pins,
  pinFolder,
  pinnedName,
  type TextLimits,
} from "./fetched-texts.ts";
import { untrustedFetches } from "./trusted-fetches.ts";

export interface SyncOptions {
  readonly config: Config;
  /** The project's root. */
  readonly root: string;
  readonly env: Environment;
  /** Whose configuration names the company. The user's company is for `inject --global` only. @default "project" */
  readonly companyOf?: "user" | "project" | undefined;
  /** Some sources are left out of the configuration, so no text is removed. */
  readonly isPartial?: boolean | undefined;
  /** A content directory to use instead of the embedded one. */
  readonly contentDirectory?: string | undefined;
  /** Fetches texts that are not due yet, too. */
  readonly force?: boolean | undefined;
  /** Also fetches from machines in this network. */
  readonly allowPrivate?: boolean | undefined;
  readonly progress?: ((text: string) => void) | undefined;
}

export interface SyncReport {
  readonly company: CompanySync | undefined;
  readonly texts: readonly TextSync[];
  /** Addresses of the project's packs that nobody has trusted. They were not fetched. */
  readonly leftOut: readonly PowerfulSetting[];
  /** Mistakes in the packs and in their markers. */
  readonly problems: readonly ContentProblem[];
}

/** A failure never stops the rest: each result has its own status. */
export async function sync(options: SyncOptions): Promise<SyncReport> {
  const { config, force, allowPrivate, progress, contentDirectory } = options;
  if (config.company !== undefined)
    progress?.(`fetching the company's packs from ${withoutPasswords(config.company.source)}`);
  const company = config.company === undefined ? undefined : await syncCompany(config.company, options);
  const { packs, problems } = await loadContent({
    layers: layersOf(options, company?.directory),
    embedded: contentDirectory === undefined ? readEmbeddedContent<{ id: string }>() : undefined,
    loadAdapterSchema: loadAnyAdapter,
  });
  const leftOut = await untrustedFetches(packs, options);
  // A pack that could not be read may still name its texts.
  const isComplete =
    options.isPartial !== true &&
    company?.status !== "failed" &&
    problems.every(({ severity }) => severity !== "error");
  const report: { texts: TextSync[]; warnings: ContentProblem[] } = { texts: [], warnings: [] };
  for (const scope of ["global", "project"] as const) {
    const { texts, warnings } = await syncTexts(
      packs.filter(({ layer }) => isUsers(layer, options) === (scope === "global")),
      { folder: pinFolder(scope, options), isComplete, leftOut, force, allowPrivate, progress },
    );
    report.texts.push(...texts);
    report.warnings.push(...warnings);
  }
  return { company, texts: report.texts, leftOut, problems: [...problems, ...report.warnings] };
}

/** Whether a layer belongs to `inject --global` alone. */
function isUsers(layer: PackLayer["layer"], { companyOf }: SyncOptions): boolean {
  return layer === "user" || (layer === "company" && companyOf === "user");
}

/** Returns every layer, whatever scope it belongs to: one sync serves them all. */
function layersOf({ root, env, contentDirectory }: SyncOptions, company: string | undefined): LayerDirectory[] {
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

/** The result for one `sync:fetch` marker. */
export interface TextSync {
  readonly url: string;
  readonly label: string | undefined;
  /** Ids of the packs with the marker. */
  readonly packs: readonly string[];
  /** `kept` and `failed` could not be fetched. For `kept` there is an earlier text. */
  readonly status: "fetched" | "fresh" | "kept" | "failed";
  /** The file with the text. */
  readonly file: string | undefined;
  /** The size of the current text. */
  readonly bytes: number;
  /** The time of that fetch, ISO 8601. */
  readonly fetched: string | undefined;
  readonly truncated: boolean;
  readonly reason: string | undefined;
  readonly warning: string | undefined;
}

export interface SyncTextsOptions {
  readonly folder: PinFolder;
  /** Whether these are all packs. If not, no text is removed. */
  readonly isComplete?: boolean | undefined;
  /** Markers that nobody has trusted. They are not fetched. */
  readonly leftOut?: readonly PowerfulSetting[] | undefined;
  /** Fetches texts that are not due yet, too. */
  readonly force?: boolean | undefined;
  readonly now?: (() => Date) | undefined;
  readonly timeoutMs?: number | undefined;
  /** Also fetches from machines in this network. */
  readonly allowPrivate?: boolean | undefined;
  readonly progress?: ((text: string) => void) | undefined;
}

interface SyncedTexts {
  /** In the order of the packs. */
  readonly texts: readonly TextSync[];
  /** Mistakes in the markers themselves. */
  readonly warnings: readonly ContentProblem[];
}

/** Fetches the texts that are due and pins them. Never throws for a page: each result has its own status. */
export async function syncTexts(layers: readonly PackLayer[], options: SyncTextsOptions): Promise<SyncedTexts> {
  const { folder, isComplete = true, leftOut = [], progress } = options;
  const { wanted, named, warnings } = collect(
    layers.flatMap(({ sources }) => sources),
    leftOut,
  );
  const pins = await openPins(folder);
  const results = new Array<Synced>(wanted.length);
  let [next, done] = [0, 0];
  const work = async () => {
    for (let index = next++; index < wanted.length; index = next++) {
      const each = wanted[index]!;
      progress?.(`fetching ${done + 1} of ${wanted.length}: ${each.marker.label ?? each.marker.url}`);
      const found = await pins.find(each.marker);
      results[index] = await syncText(each, { ...options, pins, stored: "text" in found ? found : undefined });
      done++;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  const added = results.flatMap(({ pin }) => pin ?? []);
  const problem = await pins.change({ added, wanted: isComplete ? named : undefined });
  const texts = results.map(({ result, pin }) =>
    pin === undefined || problem === undefined ? result : { ...result, status: "failed" as const, reason: problem },
  );
  return { texts, warnings };
}

/** Enough not to wait for one slow page, and polite to a server that has all pages. */
const atOnce = 4;
/** Used if the marker does not set it. */
const defaultTtlHours = 7 * 24;

interface Wanted {
  readonly marker: FetchMarker;
  readonly packs: Set<string>;
  /** The text serves all markers: it is as long as the longest of them needs. */
  limits: TextLimits;
  ttlHours: number;
}

interface Collected {
  readonly wanted: readonly Wanted[];
  /** Includes markers that nobody has trusted. */
  readonly named: readonly FetchMarker[];
  readonly warnings: readonly ContentProblem[];
}

function collect(sources: readonly PackSource[], leftOut: readonly PowerfulSetting[]): Collected {
  const places = new Set(leftOut.map(({ file, line }) => `${file}:${line}`));
  const wanted = new Map<string, Wanted>();
  const named: FetchMarker[] = [];
  const warnings: ContentProblem[] = [];
  for (const source of sources) {
    for (const [name, text] of readTexts(source)) {
      const found = findFetchMarkers(text);
      const file = join(source.directory, name);
      for (const { line, message } of found.warnings)
        warnings.push({ file, line, severity: "warning", rule: "sync-fetch", message });
      named.push(...found.markers);
      for (const marker of found.markers)
        if (!places.has(`${file}:${marker.line}`)) want(wanted, { marker, pack: source.id });
    }
  }
  return { wanted: [...wanted.values()], named, warnings };
}

/** If a pack brings its own expanded text, the plain text is not read. */
function readTexts({ texts }: PackSource): [string, string][] {
  const hasExpanded = Object.keys(texts).some((name) => name.toLowerCase() === "context.expanded.md");
  return Object.entries(texts).filter(([name]) => !hasExpanded || name.toLowerCase() !== "context.md");
}

/** Makes one fetch for equal markers. The shortest time to live counts. */
function want(
  wanted: Map<string, Wanted>,
  { marker, pack }: { readonly marker: FetchMarker; readonly pack: string },
): void {
  const ttlHours = marker.ttlHours ?? defaultTtlHours;
  const name = pinnedName(marker);
  const known = wanted.get(name) ?? { marker, packs: new Set<string>(), limits: marker, ttlHours };
  known.packs.add(pack);
  known.limits = widerLimits(known.limits, marker);
  known.ttlHours = Math.min(known.ttlHours, ttlHours);
  wanted.set(name, known);
}

/** Lines and tokens cannot be compared, so the whole text is kept for markers with both. */
function widerLimits(one: TextLimits, other: TextLimits): TextLimits {
  if (one.maxLines !== undefined && other.maxLines !== undefined)
    return { maxLines: Math.max(one.maxLines, other.maxLines) };
  if (one.maxTokens !== undefined && other.maxTokens !== undefined)
    return { maxTokens: Math.max(one.maxTokens, other.maxTokens) };
  return {};
}

interface Synced {
  readonly result: TextSync;
  /** A text that the index must name. */
  readonly pin?: Pin | undefined;
}

async function syncText(
  { marker, packs, limits, ttlHours }: Wanted,
  options: SyncTextsOptions & { readonly pins: Pins; readonly stored: PinnedText | undefined },
): Promise<Synced> {
  const { folder, pins, stored, force = false, now = () => new Date(), timeoutMs, allowPrivate } = options;
  const base = {
    ...{ url: marker.url, label: marker.label, packs: [...packs], ...factsOf(stored, folder) },
    ...{ truncated: false, reason: undefined, warning: undefined },
  };
  const isDue = stored === undefined || !isFresh(stored.pin, ttlHours, now()) || !isLongEnough(stored.pin, limits);
  if (!force && !isDue) return { result: { ...base, status: "fresh" } };
  const failed = (reason: string): Synced => ({
    result: { ...base, status: stored === undefined ? "failed" : "kept", reason },
  });
  const fetched = await fetchText(marker.url, { ...marker, timeoutMs, allowPrivate });
  if ("reason" in fetched) return failed(fetched.reason);
  const { text, truncated, warning } = fetched;
  const pinned = await pins.write({ key: marker, text, limits, fetched: now().toISOString() });
  if ("problem" in pinned) return failed(pinned.problem);
  const result: TextSync = { ...base, ...factsOf(pinned, folder), status: "fetched", truncated, warning };
  return { result, pin: pinned.pin };
}

/** A time in the future comes from a wrong clock, so the text is not fresh. */
function isFresh({ fetched }: Pin, ttlHours: number, now: Date): boolean {
  const ageMs = now.getTime() - Date.parse(fetched);
  return ageMs >= 0 && ageMs < ttlHours * 3_600_000;
}

/** Whether the text was not cut shorter than its markers now allow. */
function isLongEnough({ max_lines, max_tokens }: Pin, { maxLines, maxTokens }: TextLimits): boolean {
  if (max_lines !== undefined) return maxLines !== undefined && maxLines <= max_lines;
  return max_tokens === undefined || (maxTokens !== undefined && maxTokens <= max_tokens);
}

function factsOf(
  pinned: PinnedText | undefined,
  { directory }: PinFolder,
): Pick<TextSync, "bytes" | "fetched" | "file"> {
  if (pinned === undefined) return { bytes: 0, fetched: undefined, file: undefined };
  const { text, pin } = pinned;
  return { bytes: Buffer.byteLength(text), fetched: pin.fetched, file: join(directory, "fetched", pin.file) };
}
