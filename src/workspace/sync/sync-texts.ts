/** Fetches what the packs' `sync:fetch` markers stand for, as far as it is due. */
import { join } from "node:path";
import type { PackLayer, PackSource } from "../../packs/index.ts";
import { type FetchMarker, findFetchMarkers, truncateBytes } from "../../text/index.ts";
import type { ContentProblem } from "../content/content-problem.ts";
import type { Environment } from "../directories.ts";
import type { PowerfulSetting } from "../trust/trusted.ts";
import { fetchName, markersOf, readStoredText, type StoredText, writeStoredText } from "./expanded-texts.ts";
import { fetchText, maxFetchBytes } from "./fetch-text.ts";

export interface TextSync {
  readonly url: string;
  readonly label: string | undefined;
  /** Ids of those with the marker. */
  readonly packs: readonly string[];
  /** `kept` and `failed` could not be fetched: of the first there is an earlier text. */
  readonly status: "fetched" | "fresh" | "kept" | "failed";
  /** Of the text that is there now. */
  readonly bytes: number;
  /** When that was fetched, ISO 8601. */
  readonly fetched: string | undefined;
  readonly truncated: boolean;
  readonly reason: string | undefined;
  readonly warning: string | undefined;
}

export interface SyncTextsOptions {
  readonly env: Environment;
  /** Markers that nobody has trusted: they are not fetched. */
  readonly leftOut?: readonly PowerfulSetting[] | undefined;
  /** Fetch what is not due yet, too. */
  readonly force?: boolean | undefined;
  readonly now?: (() => Date) | undefined;
  readonly timeoutMs?: number | undefined;
  /** Also from machines of this network. */
  readonly allowPrivate?: boolean | undefined;
  readonly progress?: ((text: string) => void) | undefined;
}

export interface SyncedTexts {
  /** In the order of the packs. */
  readonly texts: readonly TextSync[];
  /** What is odd about the markers themselves. */
  readonly warnings: readonly ContentProblem[];
}

/** Never throws for a page: each result says what became of it. */
export async function syncTexts(
  layers: readonly PackLayer[],
  options: SyncTextsOptions,
): Promise<SyncedTexts> {
  const { wanted, warnings } = collect(
    layers.flatMap(({ sources }) => sources),
    options.leftOut ?? [],
  );
  const all = [...wanted.values()];
  const results = new Array<TextSync>(all.length);
  let [next, done] = [0, 0];
  const work = async () => {
    for (let index = next++; index < all.length; index = next++) {
      const each = all[index]!;
      options.progress?.(`fetching ${done + 1} of ${all.length}: ${each.marker.label ?? each.marker.url}`);
      results[index] = await syncText(each, options);
      done++;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return { texts: results, warnings };
}

/** Enough to not wait for a slow page, and polite to a server that has them all. */
const atOnce = 4;
/** Unless the marker says otherwise. */
const defaultTtlHours = 7 * 24;

interface Wanted {
  readonly marker: FetchMarker;
  readonly packs: Set<string>;
  ttlHours: number;
}

function collect(
  sources: readonly PackSource[],
  leftOut: readonly PowerfulSetting[],
): { wanted: Map<string, Wanted>; warnings: ContentProblem[] } {
  const isLeftOut = markersOf(leftOut);
  const wanted = new Map<string, Wanted>();
  const warnings: ContentProblem[] = [];
  for (const source of sources) {
    for (const [name, text] of readTexts(source)) {
      const found = findFetchMarkers(text);
      const file = join(source.directory, name);
      for (const { line, message } of found.warnings)
        warnings.push({ file, line, severity: "warning", rule: "sync-fetch", message });
      for (const marker of found.markers) if (!isLeftOut(file, marker)) want(wanted, marker, source.id);
    }
  }
  return { wanted, warnings };
}

/** A pack that brings its own expanded text is read without the plain one. */
function readTexts({ texts }: PackSource): [string, string][] {
  const hasExpanded = Object.keys(texts).some((name) => name.toLowerCase() === "context.expanded.md");
  return Object.entries(texts).filter(([name]) => !hasExpanded || name.toLowerCase() !== "context.md");
}

/** One fetch for all that ask the same; the one that wants it newest counts. */
function want(wanted: Map<string, Wanted>, marker: FetchMarker, pack: string): void {
  const ttlHours = marker.ttlHours ?? defaultTtlHours;
  const known = wanted.get(fetchName(marker)) ?? { marker, packs: new Set<string>(), ttlHours };
  known.packs.add(pack);
  known.ttlHours = Math.min(known.ttlHours, ttlHours);
  wanted.set(fetchName(marker), known);
}

async function syncText({ marker, packs, ttlHours }: Wanted, options: SyncTextsOptions): Promise<TextSync> {
  const { env, force = false, now = () => new Date(), timeoutMs, allowPrivate } = options;
  const stored = readStoredText(marker, env);
  const base = {
    ...{ url: marker.url, label: marker.label, packs: [...packs], ...sizeOf(stored) },
    ...{ truncated: false, reason: undefined, warning: undefined },
  };
  if (!force && stored !== undefined && isFresh(stored, ttlHours, now())) return { ...base, status: "fresh" };
  const failed = (reason: string): TextSync => ({
    ...base,
    status: stored === undefined ? "failed" : "kept",
    reason,
  });
  const fetched = await fetchText(marker.url, { ...marker, timeoutMs, allowPrivate });
  if ("reason" in fetched) return failed(fetched.reason);
  const { truncated, warning } = fetched;
  // Markup may grow by converting it, and the cache is bounded too.
  const text = truncateBytes(fetched.text, maxFetchBytes).text;
  const written: StoredText = { url: marker.url, fetched: now().toISOString(), text };
  const problem = await writeStoredText(marker, written, env);
  if (problem !== undefined) return failed(problem);
  return { ...base, ...sizeOf(written), status: "fetched", truncated, warning };
}

/** A time that lies ahead is a clock that was wrong: not fresh. */
function isFresh({ fetched }: StoredText, ttlHours: number, now: Date): boolean {
  const ageMs = now.getTime() - Date.parse(fetched);
  return ageMs >= 0 && ageMs < ttlHours * 3_600_000;
}

function sizeOf(stored: StoredText | undefined): { bytes: number; fetched: string | undefined } {
  return stored === undefined
    ? { bytes: 0, fetched: undefined }
    : { bytes: Buffer.byteLength(stored.text), fetched: stored.fetched };
}
