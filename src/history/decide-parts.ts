/** Decides on the parts of one message, and sees to it that something is left of the message. */
import type { CountedPart } from "../messages/index.ts";
import { type Decide, type Draft, wholeMessage } from "./draft.ts";
import { plainPlaceholder } from "./placeholders.ts";
import type { TrackedMessage } from "./tracked-history.ts";

export const drop: Decide = () => ({ action: "drop" });
export const detach: Decide = () => ({ action: "detach" });
export const stub: Decide = () => ({ action: "stub", text: plainPlaceholder });

/** The decision on a part, undefined where it stays as it is. */
export type Choose = (part: CountedPart, message: TrackedMessage) => Decide | undefined;

/** Whether a short text stands for the whole message. */
export function isStubbed({ decisions }: TrackedMessage): boolean {
  return decisions.get(wholeMessage)?.decision.action === "stub";
}

export function decideParts(draft: Draft, index: number, choose: Choose): void {
  const message = draft.messages[index] as TrackedMessage;
  if (message.sent === undefined || isStubbed(message)) return;
  const decisions = new Map<number, Decide>();
  let left = message.original.parts.length;
  for (const [at, part] of message.original.parts.entries()) {
    const known = message.decisions.get(at)?.decision.action;
    const isFinal = known === "drop" || known === "replace";
    const decide = isFinal ? undefined : choose(part, message);
    if (decide !== undefined) decisions.set(at, decide);
    if (known === "drop" || decide === drop) left--;
  }
  if (decisions.size === 0) return;
  // A message needs at least one part.
  if (left === 0) decisions.set(wholeMessage, stub);
  draft.decide(index, decisions);
}
