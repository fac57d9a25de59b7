/** One message with its decisions in force: what is sent, what that counts, what can still be read of the original. Pure. */
import type { CountedPart, MessageLens, PartEdit } from "../messages/index.ts";
import type { Decision, LedgerEntry } from "./ledger.ts";
import { shortenText } from "./shorten-text.ts";
import type { TrackedMessage } from "./tracked-history.ts";

export type Decisions = ReadonlyMap<number, LedgerEntry>;
type Rendering = Pick<TrackedMessage, "sent" | "tokens" | "kept">;

export function applyDecisions(message: TrackedMessage, lens: MessageLens, index: number): Rendering {
  const { source, original, decisions } = message;
  if (decisions.size === 0) return { sent: source, tokens: original.tokens, kept: original.tokens };
  const sent = edited(message, lens);
  if (sent === undefined) return { sent, tokens: 0, kept: 0 };
  let kept = original.tokens;
  for (const [part, { decision }] of decisions) {
    const read = original.parts[part];
    if (read !== undefined) kept -= read.tokens * lostShare(read, decision);
  }
  // Whole, so that sums are the same in whatever order they came about.
  return { sent, tokens: lens.read(sent, index).tokens, kept: Math.round(kept) };
}

function edited({ source, original, decisions }: TrackedMessage, lens: MessageLens): object | undefined {
  const edits = new Map<number, PartEdit>();
  let isDetached = false;
  for (const [part, { decision }] of decisions) {
    const { action } = decision;
    if (action === "stub") return lens.assistantText(decision.text);
    if (action === "detach") isDetached = true;
    else if (action === "drop") edits.set(part, { action });
    else edits.set(part, { action: "replace", text: newText(original.parts[part], decision) });
  }
  const sent = lens.edit(source, edits);
  return sent !== undefined && isDetached ? lens.detach(sent) : sent;
}

function newText(part: CountedPart | undefined, decision: TextDecision): string {
  return decision.action === "replace" ? decision.text : shortenText(textOf(part), decision);
}

type TextDecision = Extract<Decision, { action: "replace" | "shorten" }>;

function lostShare(part: CountedPart, decision: Decision): number {
  if (decision.action !== "shorten") return 1;
  const { length } = textOf(part);
  return length === 0 ? 1 : 1 - Math.min(1, (decision.head + decision.tail) / length);
}

/** All readable text of a part. */
export function textOf(part: CountedPart | undefined): string {
  const texts: string[] = [];
  for (const piece of part?.pieces ?? []) if ("text" in piece && piece.text !== "") texts.push(piece.text);
  return texts.join("\n");
}
