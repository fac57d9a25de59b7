import type { ComposedLayer } from "../../compose/index.ts";
import { countNoun, formatNumber } from "../../text/index.ts";
import type { AccountedContext } from "./compose-context.ts";

type Described = Omit<AccountedContext, "text">;

/** What a person should know who did not ask for an account: that something is not in the text. */
export function notesOnContext(context: Described): string[] {
  return context.account.layers.some(({ truncated }) => truncated) ? describeContext(context) : [];
}

/** What of each layer is in the text, a line each. */
export function describeContext({ account, omittedEntries }: Described): string[] {
  const { tokens, maxTokens, counter, layers, overflow } = account;
  const lines = layers.map((layer) => {
    const entries = layer.name === "project" ? omittedEntries : 0;
    const cut = layer.truncated ? `, truncated, ${omittedParts(layer, entries)} omitted` : "";
    return `${layerName(layer.name)}: ${countNoun(layer.tokens, "token")}${cut}`;
  });
  const all = `context: ${formatNumber(tokens)} of ${countNoun(maxTokens, "token")} (${counter})`;
  return [all, ...lines, ...(overflow > 0 ? [missing(overflow)] : [])];
}

/** In the words of the markers in the text. */
function omittedParts({ name, omitted }: ComposedLayer, entries: number): string {
  const others = countNoun(omitted - entries, name === "fabric" ? "item" : "line");
  if (entries === 0) return others;
  const ofTree = entries === 1 ? "1 entry" : `${formatNumber(entries)} entries`;
  return omitted === entries ? ofTree : `${ofTree} and ${others}`;
}

/** As people call it. */
export function layerName(name: ComposedLayer["name"]): string {
  return name === "priorWork" ? "prior work" : name;
}

/** Of the discoveries, which are the last that a budget cuts. */
export function missing(overflow: number): string {
  return `${countNoun(overflow, "token")} of discoveries did not fit`;
}
