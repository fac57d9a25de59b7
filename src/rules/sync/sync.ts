/** Fetches content from elsewhere: the company's packs into the cache, then the texts for the fetch markers of all packs
 *  into the folders where they are pinned. */

import { join } from "node:path";
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
import { type FetchMarker, findFetchMarkers } from "../packs/index.ts";
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
import { type SkillSync, type SyncSkillsOptions, syncSkills } from "./sync-skills.ts";
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
  /** What becomes of skills. With `check`, nothing else is looked up. @default "missing" */
  readonly skillMode?: SyncSkillsOptions["mode"] | undefined;
  /** Leaves skills as they are. */
  readonly skipsSkills?: boolean | undefined;
}

export interface SyncReport {
  readonly company: CompanySync | undefined;
  readonly texts: readonly TextSync[];
  readonly skills: readonly SkillSync[];
  /** Addresses of the project's packs that nobody has trusted. They were not fetched. */
  readonly leftOut: readonly PowerfulSetting[];
  /** Mistakes in the packs and in their markers. */
  readonly problems: readonly ContentProblem[];
}

/** A failure never stops the rest: each result has its own status. */
export async function sync(options: SyncOptions): Promise<SyncReport> {
  const { skillMode: mode = "missing", config, env, allowPrivate, progress } = options;
  const folder = pinFolder("project", options);
  const look = () =>
    options.skipsSkills === true
      ? []
      : syncSkills({ skills: config.skills, folder, env, mode, allowPrivate, progress });
  if (mode === "check") return { company: undefined, texts: [], skills: await look(), leftOut: [], problems: [] };
  const report = await syncPacks(options);
  return { ...report, skills: await look() };
}

async function syncPacks(options: SyncOptions): Promise<Omit<SyncReport, "skills">> {
  const { config, force, allowPrivate, progress, contentDirectory } = options;
  if (config.company !== undefined)
    progress?.(`fetching the company's packs from ${withoutPasswords(config.company.source)}`);
  const company = config.company === undefined ? undefined : await syncCompany(config.company, options);
  // Every layer, whatever scope it belongs to: one sync serves them all.
  const layers: LayerDirectory[] = [
    { layer: "user", directory: configDirectory(options.env), strictness: "error" },
    { layer: "project", directory: join(options.root, ".plimsoll"), root: options.root, strictness: "error" },
  ];
  if (company?.directory !== undefined)
    layers.unshift({ layer: "company", directory: company.directory, strictness: "warning", required: true });
  if (contentDirectory !== undefined)
    layers.unshift({ layer: "embedded", directory: contentDirectory, strictness: "warning", required: true });
  const { packs, problems } = await loadContent({
    layers,
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
  const isGlobal = ({ layer }: PackLayer) => layer === "user" || (layer === "company" && options.companyOf === "user");
  for (const scope of ["global", "project"] as const) {
    const { texts, warnings } = await syncTexts(
      packs.filter((layer) => isGlobal(layer) === (scope === "global")),
      { folder: pinFolder(scope, options), isComplete, leftOut, force, allowPrivate, progress },
    );
    report.texts.push(...texts);
    report.warnings.push(...warnings);
  }
  return { company, texts: report.texts, leftOut, problems: [...problems, ...report.warnings] };
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

/** Fetches the texts that are due and pins them. Never throws for a page: each result has its own status. Results are in
 *  the order of the packs; warnings are about mistakes in the markers themselves. */
export async function syncTexts(
  layers: readonly PackLayer[],
  options: SyncTextsOptions,
): Promise<{ readonly texts: readonly TextSync[]; readonly warnings: readonly ContentProblem[] }> {
  const { folder, isComplete = true, leftOut = [], progress } = options;
  const { wanted, named, warnings } = collectMarkers(
    layers.flatMap(({ sources }) => sources),
    leftOut,
  );
  const pins = await openPins(folder);
  const results = new Array<Awaited<ReturnType<typeof syncText>>>(wanted.length);
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
  // Enough not to wait for one slow page, and polite to a server that has all pages.
  await Promise.all(Array.from({ length: 4 }, work));
  const added = results.flatMap(({ pin }) => pin ?? []);
  const problem = await pins.change({ added, wanted: isComplete ? named : undefined });
  const texts = results.map(({ result, pin }) =>
    pin === undefined || problem === undefined ? result : { ...result, status: "failed" as const, reason: problem },
  );
  return { texts, warnings };
}

interface Wanted {
  readonly marker: FetchMarker;
  readonly packs: Set<string>;
  /** The text serves all markers: it is as long as the longest of them needs. */
  limits: TextLimits;
  ttlHours: number;
}

/** Makes one fetch for equal markers. The shortest time to live counts. `named` includes markers that nobody has
 *  trusted. */
function collectMarkers(sources: readonly PackSource[], leftOut: readonly PowerfulSetting[]) {
  const places = new Set(leftOut.map(({ file, line }) => `${file}:${line}`));
  const wanted = new Map<string, Wanted>();
  const named: FetchMarker[] = [];
  const warnings: ContentProblem[] = [];
  for (const { id, texts, directory } of sources) {
    // If a pack brings its own expanded text, the plain text is not read.
    const hasExpanded = Object.keys(texts).some((name) => name.toLowerCase() === "context.expanded.md");
    const read = Object.entries(texts).filter(([name]) => !hasExpanded || name.toLowerCase() !== "context.md");
    for (const [name, text] of read) {
      const found = findFetchMarkers(text);
      const file = join(directory, name);
      for (const { line, message } of found.warnings)
        warnings.push({ file, line, severity: "warning", rule: "sync-fetch", message });
      named.push(...found.markers);
      for (const marker of found.markers.filter(({ line }) => !places.has(`${file}:${line}`))) {
        const ttlHours = marker.ttlHours ?? 7 * 24;
        const known = wanted.get(pinnedName(marker)) ?? { marker, packs: new Set<string>(), limits: marker, ttlHours };
        known.packs.add(id);
        known.limits = widerLimits(known.limits, marker);
        known.ttlHours = Math.min(known.ttlHours, ttlHours);
        wanted.set(pinnedName(marker), known);
      }
    }
  }
  return { wanted: [...wanted.values()], named, warnings };
}

/** Lines and tokens cannot be compared, so the whole text is kept for markers with both. */
function widerLimits(one: TextLimits, other: TextLimits): TextLimits {
  if (one.maxLines !== undefined && other.maxLines !== undefined)
    return { maxLines: Math.max(one.maxLines, other.maxLines) };
  if (one.maxTokens !== undefined && other.maxTokens !== undefined)
    return { maxTokens: Math.max(one.maxTokens, other.maxTokens) };
  return {};
}

/** Returns a pin if the index must name a new text. */
async function syncText(
  { marker, packs, limits, ttlHours }: Wanted,
  options: SyncTextsOptions & { readonly pins: Pins; readonly stored: PinnedText | undefined },
): Promise<{ readonly result: TextSync; readonly pin?: Pin | undefined }> {
  const { folder, pins, stored, force = false, now = () => new Date(), timeoutMs, allowPrivate } = options;
  const describePin = ({ text, pin }: PinnedText) => ({
    bytes: Buffer.byteLength(text),
    fetched: pin.fetched,
    file: join(folder.directory, "fetched", pin.file),
  });
  const base = {
    url: marker.url,
    label: marker.label,
    packs: [...packs],
    ...(stored === undefined ? { bytes: 0, fetched: undefined, file: undefined } : describePin(stored)),
    truncated: false,
    reason: undefined,
    warning: undefined,
  };
  const isDue = stored === undefined || !isFresh(stored.pin, ttlHours, now()) || !isLongEnough(stored.pin, limits);
  if (!force && !isDue) return { result: { ...base, status: "fresh" } };
  const fail = (reason: string) => {
    const status: TextSync["status"] = stored === undefined ? "failed" : "kept";
    return { result: { ...base, status, reason } };
  };
  const fetched = await fetchText(marker.url, { ...marker, timeoutMs, allowPrivate });
  if ("reason" in fetched) return fail(fetched.reason);
  const { text, truncated, warning } = fetched;
  const pinned = await pins.write({ key: marker, text, limits, fetched: now().toISOString() });
  if ("problem" in pinned) return fail(pinned.problem);
  const result: TextSync = { ...base, ...describePin(pinned), status: "fetched", truncated, warning };
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
