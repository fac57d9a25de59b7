/** Notices that system text or tools have changed although the conversation has thinking that is bound to them. */
import { type BindingChange, type BoundParts, bindsThinking, findBindingChange } from "../../core/messages/index.ts";
import type { TrackedMessage } from "./tracked-history.ts";

/** What a change of system text or tools costs on a model that binds thinking: the model refuses or drops the thinking
 *  that it made before. */
export interface UnboundThinking extends BindingChange {
  /** How many blocks of thinking the request has that are bound to the earlier text and tools. */
  readonly blocks: number;
}

/** Takes the request and the messages that are sent for it. Returns undefined if no thinking is lost. */
export type WatchBinding = (request: BoundParts, messages: readonly TrackedMessage[]) => UnboundThinking | undefined;

export function createBindingWatch(model: string | undefined): WatchBinding {
  if (!bindsThinking(model)) return () => undefined;
  let before: BoundParts | undefined;
  /** How many messages had been sent. What follows them was made from the newer text and tools. */
  let sent = 0;
  return ({ system, tools }, messages) => {
    const last = before;
    before = { system, tools };
    const known = sent;
    sent = messages.length;
    // Most calls pass the objects of the call before, which need no comparison.
    if (last === undefined || (last.system === system && last.tools === tools)) return undefined;
    const change = findBindingChange(last, before);
    if (change === undefined) return undefined;
    const blocks = countThinking(messages.slice(0, known + 1));
    return blocks === 0 ? undefined : { ...change, blocks };
  };
}

function countThinking(messages: readonly TrackedMessage[]): number {
  let count = 0;
  for (const { original, decisions } of messages)
    for (const [part, { kind }] of original.parts.entries())
      if (kind === "thinking" && decisions.get(part)?.decision.action !== "drop") count++;
  return count;
}
