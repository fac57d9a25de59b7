/** The window is a hard limit for the economic policies: a request is within its budget, or nothing in it can be
 *  trimmed. */
import { expect } from "vitest";
import type { MessageLens } from "../../../core/messages/index.ts";
import type { TrimmerOptions } from "../trimmer-options.ts";
import { type PlacedPart, partsOf, placeholderOf, type Step } from "./policy-run.contract.ts";

export function expectFit({ reduction, lens, settings }: Step): void {
  const { stats, overflow, messages } = reduction;
  if (overflow === undefined) {
    expect(stats.after).toBeLessThanOrEqual(stats.budget);
    return;
  }
  expect(overflow).toMatchObject({ tokens: stats.after, limit: stats.budget });
  expect(stats.after).toBeGreaterThan(stats.budget);
  const mayStay = createRule(messages, { lens, settings });
  const left = partsOf(messages, lens).filter((part) => !mayStay(part));
  expect(left.map(({ kind, tokens, value }) => [kind, tokens, JSON.stringify(value)])).toEqual([]);
}

// A placeholder must save more than this.
const leastSaved = 8;

/** What may remain in an overflow: content of the user and the system, content that the caller wants kept, and the
 *  thinking of the turn in progress. */
function createRule(
  messages: readonly object[],
  { lens, settings }: { lens: MessageLens; settings: TrimmerOptions },
): (part: PlacedPart) => boolean {
  const { excludeTools = [], isPinned = () => false } = settings;
  const tools = toolNames(messages, lens);
  const lastTurn = startOfLastTurn(messages, lens);
  return (part) => {
    const { role, kind, callId = "", message } = part;
    if (isPinned(message, 0) || excludeTools.includes(tools.get(callId) ?? "")) return true;
    if (kind === "thinking") {
      // A turn with an excluded call stays, and so does what is bound to the turn.
      return messages.indexOf(message) >= lastTurn || (part.isBound === true && excludeTools.length > 0);
    }
    const isOurs = kind === "tool_result" || (role === "assistant" && (kind === "text" || kind === "tool_call"));
    return !isOurs || placeholderOf(part) !== undefined || savedBy(part, lens) <= leastSaved;
  };
}

/** Returns the tool names by call id. */
function toolNames(messages: readonly object[], lens: MessageLens): ReadonlyMap<string, string> {
  const calls = partsOf(messages, lens).filter(({ kind }) => kind === "tool_call");
  return new Map(calls.map(({ callId = "", toolName = "" }) => [callId, toolName]));
}

function startOfLastTurn(messages: readonly object[], lens: MessageLens): number {
  const isAssistant = messages.map((message) => lens.read(message, 1).role === "assistant");
  return isAssistant.lastIndexOf(false, isAssistant.lastIndexOf(true)) + 1;
}

function savedBy({ message, at }: PlacedPart, lens: MessageLens): number {
  const trimmed = lens.edit(message, new Map([[at, { action: "replace", text: "[trimmed]" }]]));
  return lens.read(message, 1).tokens - lens.read(trimmed as object, 1).tokens;
}
