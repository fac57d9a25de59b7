/** Clears the parts of a turn that may give way: placeholders for results, inputs and text, nothing for thinking. */
import type { CountedPart } from "../../messages/index.ts";
import { decideParts, drop } from "../decide-parts.ts";
import type { Decide, Draft } from "../draft.ts";
import { isPlaceholder, plain } from "../placeholders.ts";
import type { TrackedMessage } from "../tracked-history.ts";
import type { Turn } from "../turns.ts";
import type { Scope } from "./scope.ts";

/** From how many tokens on a part is cleared, framing included. Below that a placeholder saves too little to be worth the loss. */
export interface Clearing {
  readonly result: number;
  readonly call: number;
  readonly text: number;
  /** Of texts that told the person something, where these are longer to stay. Absent: as other text. */
  readonly answer?: number;
  /** Whether a placeholder may say what was there. Where every token counts it does not. */
  readonly isDescribed: boolean;
  /** Providers want the thinking of the turn in progress back as it was: it goes only where nothing else is left. */
  readonly lastThinking: boolean;
}
const never = Number.POSITIVE_INFINITY;
export const byAge: Clearing = {
  result: 200,
  call: 200,
  text: never,
  isDescribed: true,
  lastThinking: false,
};
export const inNeed: Clearing = { result: 200, call: 200, text: 60, isDescribed: true, lastThinking: false };
/** What the person was told, when it is long. */
export const longAnswer: Clearing = { ...byAge, result: never, call: never, text: 300 };
/** What is beside an answer, in need. */
export const besideAnswer: Clearing = { ...inNeed, answer: longAnswer.text };
/** One token more than a plain placeholder has itself, in the format where it has most. */
export const everything: Clearing = {
  result: 15,
  call: 31,
  text: 6,
  isDescribed: false,
  lastThinking: false,
};

export function clearTurn(draft: Draft, turn: Turn, scope: Scope, clearing: Clearing): void {
  const { answer: text = clearing.text } = clearing;
  const answer = text === clearing.text ? [] : scope.answer(turn);
  const answers = new Set(answer.map(({ message, part }) => draft.messages[message]?.original.parts[part]));
  for (let index = turn.start; index < turn.next; index++) {
    if (scope.isPinned(index)) continue;
    decideParts(draft, index, (part, message) => {
      const limits = answers.has(part) ? { ...clearing, text } : clearing;
      return decisionOn(part, index, { message, scope, clearing: limits });
    });
  }
}

/** Clears the newest turn and its results part by part, largest first, and no more than is needed. */
export function clearNewest(draft: Draft, scope: Scope, { most, clearing }: Need): void {
  const parts: (readonly [number, CountedPart])[] = [];
  for (let index = scope.lastTurn; index < draft.messages.length; index++) {
    if (scope.isPinned(index)) continue;
    for (const part of (draft.messages[index] as TrackedMessage).original.parts) parts.push([index, part]);
  }
  for (const [index, only] of parts.toSorted(([, a], [, b]) => b.tokens - a.tokens)) {
    if (draft.size <= most) return;
    decideParts(draft, index, (part, message) =>
      part === only ? decisionOn(part, index, { message, scope, clearing }) : undefined,
    );
  }
}

export interface Need {
  /** Stops as soon as the size is no more than this. */
  readonly most: number;
  readonly clearing: Clearing;
}

interface Context {
  readonly message: TrackedMessage;
  readonly scope: Scope;
  readonly clearing: Clearing;
}

function decisionOn(part: CountedPart, index: number, context: Context): Decide | undefined {
  const { message, scope, clearing } = context;
  const replace = (least: number): Decide | undefined => {
    if (part.tokens < least || isPlaceholder(part)) return undefined;
    const placeholder = scope.placeholder(part);
    return placeholder === undefined || clearing.isDescribed ? placeholder : plain;
  };
  if (part.kind === "tool_result") return replace(clearing.result);
  if (message.original.role !== "assistant") return undefined;
  if (part.kind === "tool_call") return replace(clearing.call);
  if (part.kind === "text") return replace(clearing.text);
  if (part.kind !== "thinking" || part.isBound === true) return undefined;
  return index < scope.lastTurn || clearing.lastThinking ? drop : undefined;
}
