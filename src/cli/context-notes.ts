/** Describes a composed context for people. */
import { countNoun, formatNumber } from "../core/text/index.ts";
import type { ComposedLayer } from "../plans/compose/index.ts";
import type { AccountedContext } from "../plans/index.ts";

/** Describes each layer in one line. Returns nothing for a whole context unless `evenIfWhole` is set. */
export function notesOnContext(
  { account, omittedEntries, leftOut = [] }: Omit<AccountedContext, "text">,
  { evenIfWhole = false }: { readonly evenIfWhole?: boolean } = {},
): string[] {
  const { tokens, maxTokens, counter, layers, overflow } = account;
  if (!evenIfWhole && !layers.some(({ truncated }) => truncated)) return [];
  const lines = layers.map((layer) => {
    // The words of the markers in the text.
    const entries = layer.name === "project" ? omittedEntries : 0;
    const others = countNoun(layer.omitted - entries, layer.name === "fabric" ? "item" : "line");
    const ofTree = entries === 1 ? "1 entry" : `${formatNumber(entries)} entries`;
    const both = layer.omitted === entries ? ofTree : `${ofTree} and ${others}`;
    const cut = layer.truncated ? `, truncated, ${entries === 0 ? others : both} omitted` : "";
    return `${layerName(layer.name)}: ${countNoun(layer.tokens, "token")}${cut}`;
  });
  const all = `context: ${formatNumber(tokens)} of ${countNoun(maxTokens, "token")} (${counter})`;
  const known = leftOut.length === 0 ? [] : [`not in the snapshot, because the agent loads it: ${leftOut.join(", ")}`];
  return [all, ...lines, ...known, ...(overflow > 0 ? [missing(overflow)] : [])];
}

/** The name of a layer for people. */
export function layerName(name: ComposedLayer["name"]): string {
  return name === "priorWork" ? "prior work" : name;
}

/** Describes discoveries that did not fit. */
export function missing(overflow: number): string {
  return `${countNoun(overflow, "token")} of discoveries did not fit`;
}
