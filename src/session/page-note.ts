import { leastAllocation } from "../budget/index.ts";
import type { Cut } from "./envelope.ts";
import type { HintedTool, Hints } from "./hints.ts";
import { parseToken } from "./pages/continuation.ts";
import type { NoteFacts } from "./pages/page-source.ts";
import type { Measured } from "./state/session-record.ts";
import type { BudgetedTool } from "./tool/budgeted-tool.ts";

export interface NoteOptions {
  readonly hints: Hints;
  /** The tool whose result is on the page. */
  readonly origin: string;
  readonly tool: BudgetedTool | undefined;
  /** The page was asked for by the tool's own call, not by a token. */
  readonly isDirectCall: boolean;
  /** Of the page, as the caller wanted it. */
  readonly maxTokens: number | undefined;
  /** What the tool that takes tokens is called. */
  readonly nextPageName: string;
}

/** `budget_note`: how to go on from this page, and how much more there is room for. */
export function pageNote(facts: NoteFacts, options: NoteOptions): string | undefined {
  const { hints, origin, tool, isDirectCall } = options;
  const { token, cut } = facts;
  const hinted = hintedTool(origin, tool);
  const first = [leastNote(facts, options), cut && cutNote(cut)];
  if (token === undefined) return join([...first, isDirectCall ? hints.note(hinted) : undefined]);
  const isMore = cut === undefined && parseToken(token)?.position.at === "items";
  return join([
    ...first,
    continueNote(token, options),
    isMore ? hints.noteOfMore(hinted, measurePage(facts, hinted)) : undefined,
  ]);
}

/** For tools that are not ours the page itself is all that there is to go by. */
export function hintedTool(origin: string, tool: BudgetedTool | undefined): HintedTool {
  return tool ?? { name: origin, itemTokens: 50, itemUnit: "items" };
}

/** In the unit of the tool's hints. */
export function measurePage(
  { items, itemTokens }: Pick<NoteFacts, "items" | "itemTokens">,
  { itemUnit }: HintedTool,
): Measured {
  const units = itemUnit === "KB" ? JSON.stringify(items).length / 1_024 : items.length;
  return { units, tokens: itemTokens };
}

/** A page that is larger than was asked for says why. */
function leastNote(facts: NoteFacts, { maxTokens = leastAllocation }: NoteOptions): string | undefined {
  const isRaised = maxTokens < leastAllocation && (facts.token !== undefined || facts.itemTokens > maxTokens);
  return isRaised ? `The least budget is ${leastAllocation}.` : undefined;
}

function continueNote(token: string, { origin, isDirectCall, nextPageName }: NoteOptions): string {
  const { id, position } = parseToken(token) ?? {};
  if (position?.at === "fields" && position.from === 0)
    return `Fields are left out: use ${nextPageName} with token ${token} to get them.`;
  const offset = position?.at === "items" ? position.offset : undefined;
  if (offset !== undefined && isDirectCall) return `Use offset=${offset} to continue.`;
  if (offset !== undefined && id === undefined) return `Call ${origin} with offset=${offset} to continue.`;
  return `Use ${nextPageName} with token ${token} to continue.`;
}

function cutNote({ item, from, to, length }: Cut): string {
  const what = item === undefined ? "The fields" : `Item ${item}`;
  return `${what}: characters ${from} to ${to} of ${length}, too large for one page.`;
}

function join(sentences: readonly (string | undefined)[]): string | undefined {
  const told = sentences.filter((sentence) => sentence !== undefined);
  return told.length === 0 ? undefined : told.join(" ");
}
