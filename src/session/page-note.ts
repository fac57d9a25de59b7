import type { BudgetedTool } from "./budgeted-tool.ts";
import type { Cut } from "./envelope.ts";
import type { HintedTool, Hints } from "./hints.ts";
import { parseToken } from "./pages/continuation.ts";
import type { NoteFacts } from "./pages/page-source.ts";
import type { Measured } from "./state/session-record.ts";

export interface NoteOptions {
  readonly hints: Hints;
  /** The tool whose result is on the page. */
  readonly origin: string;
  readonly tool: BudgetedTool | undefined;
  /** The page was asked for by the tool's own call, not by a token. */
  readonly isOwnCall: boolean;
}

/** `budget_note`: how to go on from this page, and how much more there is room for. */
export function pageNote(
  facts: NoteFacts,
  { hints, origin, tool, isOwnCall }: NoteOptions,
): string | undefined {
  const { token, cut } = facts;
  const hinted = hintedTool(origin, tool);
  if (token === undefined) return join([cut && cutNote(cut), isOwnCall ? hints.note(hinted) : undefined]);
  const how = continueNote(token, isOwnCall ? undefined : origin);
  return join([
    cut && cutNote(cut),
    how,
    cut === undefined ? hints.noteOfMore(hinted, measurePage(facts, hinted)) : undefined,
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

function continueNote(token: string, origin: string | undefined): string {
  const continuation = parseToken(token);
  if (continuation?.id !== undefined || continuation?.position.at !== "items") {
    return `Use next_page with token ${token} to continue.`;
  }
  const { offset } = continuation.position;
  return origin === undefined
    ? `Use offset=${offset} to continue.`
    : `Call ${origin} with offset=${offset} to continue.`;
}

function cutNote({ item, from, to, length }: Cut): string {
  const what = item === undefined ? "The fields" : `Item ${item}`;
  return `${what}: characters ${from} to ${to} of ${length}, too large for one page.`;
}

function join(sentences: readonly (string | undefined)[]): string | undefined {
  const told = sentences.filter((sentence) => sentence !== undefined);
  return told.length === 0 ? undefined : told.join(" ");
}
