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
    const isSame = before?.system === system && before?.tools === tools;
    const change = before === undefined || isSame ? undefined : findBindingChange(before, { system, tools });
    if (before === undefined || change !== undefined) before = { system, tools };
    const known = sent;
    sent = messages.length;
    const blocks = change === undefined ? 0 : countThinking(messages.slice(0, known + 1));
    return change === undefined || blocks === 0 ? undefined : { ...change, blocks };
  };
}

function countThinking(messages: readonly TrackedMessage[]): number {
  let count = 0;
  for (const { original, decisions, sent } of messages) {
    if (sent === undefined) continue;
    for (const [part, { kind }] of original.parts.entries())
      if (kind === "thinking" && decisions.get(part)?.decision.action !== "drop") count++;
  }
  return count;
}
