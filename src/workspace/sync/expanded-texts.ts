/**
 * What `sync:fetch` markers stand for, in the user's cache: one file for each address, format and selector, so that a change of
 * the text around a marker, or of its limits, needs no new fetch. A marker without a text in the cache stays, and is left out
 * when the pack is read.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { PackLayer, PackSource } from "../../packs/index.ts";
import {
  type FetchMarker,
  fitForeignText,
  type ReplacedMarkers,
  replaceFetchMarkers,
} from "../../text/index.ts";
import { cacheDirectory, type Environment } from "../directories.ts";
import { removeStaleTemporaries, replaceFile, stateOf } from "../files/replace-file.ts";
import type { PowerfulSetting } from "../trust/trusted.ts";

/** What tells one fetch from another. */
export type FetchKey = Pick<FetchMarker, "url" | "format" | "selector">;

export interface StoredText {
  readonly url: string;
  /** ISO 8601. */
  readonly fetched: string;
  /** Converted, not yet cut to a marker's limit. */
  readonly text: string;
}

export interface ExpandedLayers {
  readonly layers: readonly PackLayer[];
  /** Where a line of an expanded text stands in its file, so that a warning names what the author sees. */
  originalLine(file: string, line: number): number;
}

export interface ExpandOptions {
  readonly env: Environment;
  /** Markers that nobody has trusted: they stay as they are. */
  readonly leftOut: readonly PowerfulSetting[];
}

/** The layers with every fetched text in its place. A pack without markers is the same object. */
export function expandLayers(layers: readonly PackLayer[], { env, leftOut }: ExpandOptions): ExpandedLayers {
  const expanded: Expanded = { textOf: createReader(env), isLeftOut: markersOf(leftOut), texts: new Map() };
  return {
    layers: layers.map((layer) => ({
      ...layer,
      sources: layer.sources.map((source) => expandPack(source, expanded)),
    })),
    originalLine: (file, line) => expanded.texts.get(file)?.originalLine(line) ?? line,
  };
}

interface Expanded {
  readonly textOf: (key: FetchKey) => string | undefined;
  readonly isLeftOut: (file: string, marker: FetchMarker) => boolean;
  /** By file. */
  readonly texts: Map<string, ReplacedMarkers>;
}

/** Tells the markers that these settings are about. */
export function markersOf(settings: readonly PowerfulSetting[]): Expanded["isLeftOut"] {
  const places = new Set(settings.map(({ file, line }) => `${file}:${line}`));
  return (file, { line }) => places.has(`${file}:${line}`);
}

function expandPack(source: PackSource, { textOf, isLeftOut, texts }: Expanded): PackSource {
  const entries = Object.entries(source.texts);
  if (!entries.some(([, text]) => text.includes("sync:fetch"))) return source;
  const expanded = entries.map(([name, text]) => {
    const file = join(source.directory, name);
    const replaced = expandText(text, (marker) => (isLeftOut(file, marker) ? undefined : textOf(marker)));
    texts.set(file, replaced);
    return [name, replaced.text];
  });
  return { ...source, texts: Object.fromEntries(expanded) };
}

/** Each fetched text within its marker's limit. */
function expandText(text: string, textOf: (marker: FetchMarker) => string | undefined): ReplacedMarkers {
  return replaceFetchMarkers(text, (marker) => {
    const fetched = textOf(marker);
    if (fetched === undefined) return undefined;
    // A token is four bytes here, as for every budget in tokens without a counter.
    const maxBytes = marker.maxTokens === undefined ? undefined : marker.maxTokens * 4;
    return fitForeignText(fetched, { maxLines: marker.maxLines, maxBytes }).text;
  });
}

function createReader(env: Environment): (key: FetchKey) => string | undefined {
  const known = new Map<string, string | undefined>();
  return (key) => {
    const file = storedFile(key, env);
    if (!known.has(file)) known.set(file, readStoredText(key, env)?.text);
    return known.get(file);
  };
}

/** A file that is not there, or is not as written, is a text that was never fetched. */
export function readStoredText(key: FetchKey, env: Environment): StoredText | undefined {
  try {
    const stored: Partial<StoredText> = JSON.parse(readFileSync(storedFile(key, env), "utf8"));
    const { url, fetched, text } = stored;
    return typeof url === "string" && typeof fetched === "string" && typeof text === "string"
      ? { url, fetched, text }
      : undefined;
  } catch {
    return undefined;
  }
}

/** Says why if it cannot: what was there stays then. */
export async function writeStoredText(
  key: FetchKey,
  stored: StoredText,
  env: Environment,
): Promise<string | undefined> {
  const file = storedFile(key, env);
  try {
    await removeStaleTemporaries(file);
    const bytes = Buffer.from(`${JSON.stringify(stored)}\n`);
    await replaceFile(file, { bytes, expected: await stateOf(file), isPrivate: true });
    return undefined;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : undefined;
    if (code === undefined) throw error;
    return `${file} cannot be written (${code})`;
  }
}

/** The selector says nothing about a text that is taken as it is. */
export function fetchName({ url, format, selector }: FetchKey): string {
  return JSON.stringify([url, format, format === "raw" ? "" : (selector ?? "")]);
}

function storedFile(key: FetchKey, env: Environment): string {
  const hash = createHash("sha256").update(fetchName(key)).digest("hex").slice(0, 32);
  return join(cacheDirectory(env), "fetched", `${hash}.json`);
}
