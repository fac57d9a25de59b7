/** Puts the pinned texts in the place of fetch markers in packs. */

import { join } from "node:path";
import type { ContentProblem } from "../content/load-content.ts";
import type { PackLayer, PackSource, PackWarning } from "../packs/index.ts";
import { findFetchMarkers, headingsBelow, type ReplacedMarkers, replaceFetchMarkers } from "../packs/index.ts";
import { fitToMarker, openPins, type PinFolder, type Pins } from "./fetched-texts.ts";

/** Returns the layers with every pinned text in place. A pack without markers is the same object. A marker without a
 *  text is kept: whoever reads the pack leaves it out. */
export async function expandLayers(
  layers: readonly PackLayer[],
  folder: PinFolder,
): Promise<{
  readonly layers: readonly PackLayer[];
  /** Returns the problem for a warning about an expanded text, with the line that the author sees. For a marker
   *  without a text it says why there is none. */
  explain(warning: PackWarning): ContentProblem;
}> {
  const expanded = new Map<PackSource, PackSource>();
  /** Keys are files. */
  const replacedTexts = new Map<string, ReplacedMarkers>();
  /** Keys are files with lines. */
  const problems = new Map<string, ContentProblem>();
  let pins: Pins | undefined;
  for (const { layer, sources } of layers) {
    // Whoever names another content directory may not maintain it.
    const severity = layer === "embedded" ? "warning" : "error";
    for (const source of sources) {
      if (!Object.values(source.texts).some((text) => text.includes("sync:fetch"))) continue;
      pins ??= await openPins(folder);
      const texts: Record<string, string> = {};
      for (const [name, text] of Object.entries(source.texts)) {
        const file = join(source.directory, name);
        const { replaced, missing } = await expandText(text, { file, pins, severity });
        replacedTexts.set(file, replaced);
        for (const [line, problem] of missing) problems.set(`${file}:${line}`, problem);
        texts[name] = replaced.text;
      }
      expanded.set(source, { ...source, texts, segments: undefined });
    }
  }
  return {
    layers: layers.map((layer) => ({
      ...layer,
      sources: layer.sources.map((source) => expanded.get(source) ?? source),
    })),
    explain: (warning) => {
      const file = join(warning.directory, warning.file);
      const line = replacedTexts.get(file)?.originalLine(warning.line) ?? warning.line;
      const { message } = warning;
      return problems.get(`${file}:${line}`) ?? { file, line, severity: "warning", rule: "text", message };
    },
  };
}

async function expandText(
  text: string,
  { file, pins, severity }: Pick<ContentProblem, "file" | "severity"> & { readonly pins: Pins },
): Promise<{ readonly replaced: ReplacedMarkers; readonly missing: ReadonlyMap<number, ContentProblem> }> {
  const byLine = new Map<number, string>();
  const missing = new Map<number, ContentProblem>();
  const rule = "fetched-text";
  for (const marker of findFetchMarkers(text).markers) {
    const { line, url } = marker;
    const found = await pins.find(marker);
    if ("text" in found) byLine.set(line, fitToMarker(headingsBelow(found.text, marker), marker).text);
    else if ("reason" in found) missing.set(line, { file: found.file, line: 1, severity, rule, message: found.reason });
    else {
      // Only content of --content can have markers that are warnings, and without it sync does not read that content.
      const command = severity === "warning" ? "`plimsoll sync` with the same --content" : "`plimsoll sync`";
      const message = `the text of ${url} was never fetched. Run ${command}, and commit what it writes to fetched/`;
      missing.set(line, { file, line, severity, rule, message });
    }
  }
  return { replaced: replaceFetchMarkers(text, ({ line }) => byLine.get(line)), missing };
}
