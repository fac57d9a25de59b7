import { countNoun } from "../count-noun.ts";
import { formatNumber } from "../table.ts";
import type { ContextAccount } from "./compose-context.ts";

/** What a person should know who did not ask for an account: that something is not in the text. */
export function notesOnContext(account: ContextAccount): string[] {
  return account.layers.some(({ truncated }) => truncated) ? describeContext(account) : [];
}

/** What of each layer is in the text, a line each. */
export function describeContext({ tokens, maxTokens, counter, layers, overflow }: ContextAccount): string[] {
  const names = { project: "project", fabric: "fabric", priorWork: "prior work" };
  const lines = layers.map(({ name, tokens: own, truncated, omitted }) => {
    const cut = truncated
      ? `, truncated, ${countNoun(omitted, name === "fabric" ? "item" : "line")} omitted`
      : "";
    return `${names[name]}: ${countNoun(own, "token")}${cut}`;
  });
  const all = `context: ${formatNumber(tokens)} of ${countNoun(maxTokens, "token")} (${counter})`;
  const over = `the discoveries do not fit: ${countNoun(overflow, "token")} of them are missing`;
  return [all, ...lines, ...(overflow > 0 ? [over] : [])];
}
