/** One message with its decisions in force: what is sent, what that counts, what can still be read of the original. Pure. */
import type { CountedPart, MessageLens, PartEdit } from "../messages/index.ts";
import type { LedgerEntry } from "./ledger.ts";
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
  for (const [part, { decision }] of decisions) {
    if (decision.action === "stub") return lens.assistantText(decision.text);
    if (decision.action === "shorten") {
      const text = shortenText(textOf(original.parts[part]), decision);
      edits.set(part, { action: "replace", text });
    } else edits.set(part, decision);
  }
  return lens.edit(source, edits);
}

function lostShare(part: CountedPart, decision: LedgerEntry["decision"]): number {
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
