/** Puts the pinned texts in the place of fetch markers in packs. */

import { join } from "node:path";
import {
  type FetchMarker,
  findFetchMarkers,
  headingsBelow,
  type ReplacedMarkers,
  replaceFetchMarkers,
} from "../../core/text/index.ts";
import type { ContentProblem } from "../content/load-content.ts";
import type { PackLayer, PackSource, PackWarning } from "../packs/index.ts";
import { type FoundPin, fitToMarker, openPins, type PinFolder, type PinnedText, type Pins } from "./fetched-texts.ts";

interface ExpandedLayers {
  readonly layers: readonly PackLayer[];
  /** Returns the problem for a warning about an expanded text, with the line that the author sees. For a marker
   *  without a text it says why there is none. */
  problemOf(warning: PackWarning): ContentProblem;
}

/** Returns the layers with every pinned text in place. A pack without markers is the same object. A marker without a
 *  text is kept: whoever reads the pack leaves it out. */
export async function expandLayers(layers: readonly PackLayer[], folder: PinFolder): Promise<ExpandedLayers> {
  const sources = layers.flatMap((layer) => layer.sources.map((source) => ({ source, layer: layer.layer })));
  const marked = sources.filter(({ source }) => Object.values(source.texts).some(mayHoldMarkers));
  const state: Expanding = { texts: new Map(), problems: new Map(), expanded: new Map() };
  if (marked.length > 0) {
    const { find: findPin } = await openPins(folder);
    for (const { source, layer } of marked) {
      // Whoever names another content directory may not maintain it.
      const severity = layer === "embedded" ? "warning" : "error";
      state.expanded.set(source, await expandPack(source, { state, findPin, severity }));
    }
  }
  return {
    layers: layers.map((layer) => ({
      ...layer,
      sources: layer.sources.map((source) => state.expanded.get(source) ?? source),
    })),
    problemOf: ({ directory, file: name, line: shown, message }) => {
      const file = join(directory, name);
      const line = state.texts.get(file)?.originalLine(shown) ?? shown;
      return state.problems.get(`${file}:${line}`) ?? { file, line, severity: "warning", rule: "text", message };
    },
  };
}

function mayHoldMarkers(text: string): boolean {
  return text.includes("sync:fetch");
}

interface Expanding {
  readonly expanded: Map<PackSource, PackSource>;
  /** Keys are files. */
  readonly texts: Map<string, ReplacedMarkers>;
  /** Keys are files with lines. */
  readonly problems: Map<string, ContentProblem>;
}

interface ExpandOptions {
  readonly state: Expanding;
  readonly findPin: Pins["find"];
  readonly severity: ContentProblem["severity"];
}

async function expandPack(source: PackSource, { state, findPin, severity }: ExpandOptions): Promise<PackSource> {
  const texts: Record<string, string> = {};
  for (const [name, text] of Object.entries(source.texts)) {
    const file = join(source.directory, name);
    const byLine = new Map<number, string>();
    for (const marker of findFetchMarkers(text).markers) {
      const found = await findPin(marker);
      if ("text" in found) byLine.set(marker.line, fitToMarker(headingsBelow(found.text, marker), marker).text);
      else state.problems.set(`${file}:${marker.line}`, pinProblem(found, { file, marker, severity }));
    }
    const replaced = replaceFetchMarkers(text, ({ line }) => byLine.get(line));
    state.texts.set(file, replaced);
    texts[name] = replaced.text;
  }
  return { ...source, texts };
}

function pinProblem(
  found: Exclude<FoundPin, PinnedText>,
  { file, marker, severity }: Pick<ContentProblem, "file" | "severity"> & { readonly marker: FetchMarker },
): ContentProblem {
  if ("reason" in found) return { file: found.file, line: 1, severity, rule: "fetched-text", message: found.reason };
  // Only content of --content can have markers that are warnings, and without it sync does not read that content.
  const command = severity === "warning" ? "`plimsoll sync` with the same --content" : "`plimsoll sync`";
  const message = `the text of ${marker.url} was never fetched. Run ${command}, and commit what it writes to fetched/`;
  return { file, line: marker.line, severity, rule: "fetched-text", message };
}
