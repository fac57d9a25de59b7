/** Takes whole exchanges out of a history. What a person wrote stays, and roles go on alternating. */
import { detach, drop, isStubbed, stub } from "../decide-parts.ts";
import { type Decide, type Draft, wholeMessage } from "../draft.ts";
import type { TrackedMessage } from "../tracked-history.ts";
import type { Exchange, PartPlace, Turn } from "../turns.ts";
import { besideAnswer, clearTurn, longAnswer } from "./clear.ts";
import type { Scope } from "./scope.ts";

/** A turn with its results goes as a whole. What the person was told stays unless it is long, also beside tools of the provider. */
export function collapseTurn(draft: Draft, turn: Turn, scope: Scope): void {
  const exchange = scope.exchange(turn);
  if (exchange === undefined && scope.hasCalls(turn)) {
    clearTurn(draft, turn, scope, besideAnswer);
    return;
  }
  if (exchange !== undefined) dropExchange(draft, exchange, scope.answer(turn));
  clearTurn(draft, turn, scope, longAnswer);
}

/** An answer with thinking that is bound to it goes as a whole, and a short text stands for both. */
export function stubAnswer(draft: Draft, { start, end }: Turn, scope: Scope): void {
  const turn = draft.messages.slice(start, end);
  const last = turn.at(-1);
  if (last !== undefined && isStubbed(last)) return;
  const isPinned = turn.some((_message, index) => scope.isPinned(start + index));
  const parts = turn.flatMap(({ original }) => original.parts);
  if (isPinned || !parts.some(({ kind, isBound }) => kind === "thinking" && isBound === true)) return;
  if (!parts.every(({ kind }) => kind === "text" || kind === "thinking")) return;
  for (const [index, message] of turn.entries())
    if (message.sent !== undefined) dropParts(draft, start + index, message.original.parts.keys());
  standIn(draft, end - 1);
}

function dropExchange(draft: Draft, { turn, results }: Exchange, answer: readonly PartPlace[]): void {
  for (let index = turn.start; index < turn.end; index++) {
    const message = draft.messages[index] as TrackedMessage;
    if (message.sent === undefined) continue;
    const kept = new Set(answer.filter((place) => place.message === index).map(({ part }) => part));
    const { parts } = message.original;
    dropParts(
      draft,
      index,
      [...parts.keys()].filter((part) => !kept.has(part)),
    );
    const isBound = [...kept].some((part) => parts[part]?.isBound === true);
    if (isBound && !message.decisions.has(wholeMessage))
      draft.decide(index, new Map([[wholeMessage, detach]]));
  }
  const byMessage = new Map<number, number[]>();
  for (const { message, part } of results) {
    const parts = byMessage.get(message);
    if (parts === undefined) byMessage.set(message, [part]);
    else parts.push(part);
  }
  for (const [index, parts] of byMessage) dropParts(draft, index, parts);
}

function dropParts(draft: Draft, index: number, parts: Iterable<number>): void {
  const { decisions } = draft.messages[index] as TrackedMessage;
  const dropped = new Map<number, Decide>();
  for (const part of parts) if (decisions.get(part)?.decision.action !== "drop") dropped.set(part, drop);
  if (dropped.size > 0) draft.decide(index, dropped);
}

/** Where nothing of the assistant is left between two messages of others, a short text of its own stands for what was there. */
export function keepRolesApart(draft: Draft): void {
  let isAfterOther = false;
  let dropped: number | undefined;
  for (const [index, { original, sent }] of draft.messages.entries()) {
    const isAssistant = original.role === "assistant";
    if (sent === undefined) {
      if (isAssistant) dropped = index;
      continue;
    }
    // A system message in between belongs to what comes before it: a text of the assistant goes behind it.
    if (original.role === "system") continue;
    if (!isAssistant && isAfterOther && dropped !== undefined) standIn(draft, dropped);
    isAfterOther = !isAssistant;
    dropped = undefined;
  }
}

function standIn(draft: Draft, index: number): void {
  draft.decide(index, new Map([[wholeMessage, stub]]));
}
