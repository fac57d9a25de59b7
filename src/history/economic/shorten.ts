/** The newest results, cut to what fits: all of them to one size, their beginning and their end stay. */
import { textOf } from "../apply-decisions.ts";
import type { Decide, Draft } from "../draft.ts";
import type { TrackedMessage } from "../tracked-history.ts";
import type { Scope } from "./scope.ts";

const minKeptTokens = 100;
const headShare = 0.7;
/** Of the words that say how much is missing, and of the part around the text. */
const noteTokens = 60;
// Tokens are not spread evenly over a text: a cut may leave too much.
const attempts = 4;

export function shortenNewest(draft: Draft, budget: number, scope: Scope): void {
  const results = newestResults(draft, scope);
  if (results.length === 0) return;
  const whole = results.reduce((sum, { tokens }) => sum + tokens, 0);
  let room = whole - (draft.size - budget);
  for (let attempt = 0; attempt < attempts && draft.size > budget; attempt++) {
    const cap = Math.floor(capFor(results, room) - noteTokens);
    if (cap < minKeptTokens) return;
    for (const result of results) if (result.tokens > cap + noteTokens) cut(draft, result, cap);
    room -= draft.size - budget;
  }
}

interface Result {
  readonly message: number;
  readonly part: number;
  readonly tokens: number;
  readonly text: string;
}

/** Those that are whole; one without text, such as a picture, cannot be shortened. */
function newestResults(draft: Draft, scope: Scope): Result[] {
  const results: Result[] = [];
  for (let message = scope.newest; message < draft.messages.length; message++) {
    const { original, decisions } = draft.messages[message] as TrackedMessage;
    if (scope.isPinned(message)) continue;
    for (const [part, read] of original.parts.entries()) {
      if (read.kind !== "tool_result" || decisions.has(part) || scope.placeholder(read) === undefined)
        continue;
      const text = textOf(read);
      if (text !== "") results.push({ message, part, tokens: read.tokens, text });
    }
  }
  return results;
}

/** The most that each may have so that all together have no more than the room: what small ones leave is shared by the larger. */
function capFor(results: readonly Result[], room: number): number {
  let left = room;
  const sizes = results.map(({ tokens }) => tokens).sort((a, b) => a - b);
  for (const [index, tokens] of sizes.entries()) {
    const share = left / (sizes.length - index);
    if (tokens > share) return share;
    left -= tokens;
  }
  return Number.POSITIVE_INFINITY;
}

function cut(draft: Draft, { message, part, tokens, text }: Result, keptTokens: number): void {
  const characters = Math.floor((text.length * keptTokens) / tokens);
  const head = Math.floor(characters * headShare);
  const shorten: Decide = () => ({ action: "shorten", head, tail: characters - head });
  draft.decide(message, new Map([[part, shorten]]));
}
