/** Trims late, a lot at once and rarely. Nothing happens while the history fits its budget; then one epoch cuts
 *  it down, oldest first. Decisions stay, so the provider's cache holds until the next epoch. A history has three
 *  zones, oldest first: removed exchanges, a short trace of exchanges with placeholders, and whole messages. */
import type { HistoryDraft } from "../draft.ts";
import type { TrackedMessage } from "../tracked-history.ts";
import type { Turn } from "../turns.ts";
import { dropBoundThinking } from "./bound-thinking.ts";
import type { DigestRenderer } from "./digest.ts";
import { createTrimSteps, type ScopeOptions, type TrimSteps } from "./economic-steps.ts";
import type { Policy } from "./policy.ts";

/** The settings of an economic policy. Shares are shares of the message budget. */
export interface EconomicOptions extends ScopeOptions {
  readonly renderDigest: DigestRenderer;
  /** Whether to write a digest even if there is nothing to list, because a summary takes its place. */
  readonly needsDigest: boolean;
  /** The size from which to trim if the cache is lost anyway, when an epoch costs nothing extra. Otherwise the policy
   *  trims what no longer fits. */
  readonly coldTrigger: number;
  readonly lowWater: number;
  readonly protect: { readonly turns: number; readonly share: number };
  /** Whether thinking is tied to everything before it, so that an edit also removes the thinking that follows. */
  readonly bindsThinking: boolean;
}

export function createEconomicPolicy(options: EconomicOptions): Policy {
  return {
    decide(draft, { budget, isCold, hasRecall }) {
      const threshold = budget;
      if (draft.size <= (isCold ? options.coldTrigger * budget : budget)) return { threshold };
      const outgrownAt = firstBeyond(draft, budget);
      const isAdopted = draft.size > budget && draft.adopt();
      if (!isAdopted || draft.size > budget) runEpoch(draft, budget, { ...options, hasRecall });
      if (options.bindsThinking) dropBoundThinking(draft);
      const excess = draft.size > budget ? { tokens: draft.size, limit: budget } : undefined;
      return { threshold, excess, outgrownAt };
    },
  };
}

/** Returns the index of the first message with which the history exceeds the budget. */
function firstBeyond({ messages, size }: HistoryDraft, budget: number): number | undefined {
  let found: number | undefined;
  for (let index = messages.length - 1, upTo = size; index >= 0 && upTo > budget; index--) {
    found = index;
    upTo -= (messages[index] as TrackedMessage).tokens;
  }
  return found;
}

interface EpochOptions extends EconomicOptions {
  readonly hasRecall: boolean;
}

function runEpoch(draft: HistoryDraft, budget: number, options: EpochOptions): void {
  const { protect } = options;
  const steps = createTrimSteps(draft, options);
  // The longer a session is compared with its budget, the more of it is gone anyway, and the more a deep cut saves.
  const target = options.lowWater * Math.max(0.5, Math.min(1, budget / draft.originalSize)) * budget;
  const limit = findFirstProtected(draft, steps, { turns: protect.turns, tokens: protect.share * budget });
  const pass = { draft, steps, budget };
  clearOldest(pass, { limit, target }, options);
  if (draft.size > runway * budget) makeRoom(pass, options, { limit, target });
  steps.keepRolesApart();
  if (draft.size > budget) squeeze(draft, steps, { goal: runway * budget, limit: budget });
  skipSettled(draft, steps);
  writeDigest(pass, options);
}

/** Writes the digest of what is gone into the last result that is trimmed. Leaves the previous digest as it is if the
 *  epoch changes only what comes after it, and writes none if the request is too large anyway. */
function writeDigest({ draft, steps, budget }: Pass, options: EpochOptions): void {
  // If an epoch ends above this, the next one comes soon anyway.
  const room = 0.85 * budget - draft.size;
  // Shares of the message budget. Notes are part of the lines.
  const digestShares = { names: 0.04, lines: 0.03, notes: 0.01 };
  const digest = steps.digest();
  const isFree = digest.placed >= draft.firstChanged && draft.firstChanged < draft.messages.length;
  if (!isFree || room <= 0) return;
  digest.drop();
  const share = Math.min(1, room / (budget * (digestShares.names + digestShares.lines)));
  const tokens = (part: number): number => Math.floor(share * part * budget);
  const text = options.renderDigest(draft, {
    names: tokens(digestShares.names),
    lines: tokens(digestShares.lines),
    notes: options.bindsThinking ? tokens(digestShares.notes) : 0,
    hasIds: options.hasRecall && options.placeholders === "descriptive",
  });
  if (text !== undefined || options.needsDigest) digest.place(text ?? "[trimmed earlier]");
}

/** A share of the budget. An epoch that ends above it would soon be followed by another one. */
const runway = 0.7;

interface Pass {
  readonly draft: HistoryDraft;
  readonly steps: TrimSteps;
  readonly budget: number;
}

function clearOldest({ draft, steps, budget }: Pass, { limit, target }: Reach, options: EconomicOptions): void {
  // Exchanges with placeholders say little about old work, and every call pays for them.
  const addToTrace = createTrace(draft, steps, 0.01 * budget);
  let keepsThinking = options.bindsThinking;
  for (const [index, turn] of steps.turns.entries()) {
    if (turn.start < draft.boundary) continue;
    if (index >= limit || draft.size <= target) break;
    steps.clearTurn(turn, "byAge");
    if (keepsThinking && draft.firstChanged < draft.messages.length) {
      // Thinking goes with the first change whatever follows, and leaves more room for the rest.
      dropBoundThinking(draft);
      keepsThinking = false;
    }
    draft.moveBoundary(turn.next);
    addToTrace(turn);
  }
}

/** Used if cutting by age left too little room: removes the trace of old exchanges, then old answers, then reduces the
 *  protection. */
function makeRoom(pass: Pass, options: EconomicOptions, { limit, target }: Reach): void {
  const { draft, steps } = pass;
  const unprotected = steps.turns.slice(0, limit);
  // The digest needs a trimmed result to stand in.
  const last = unprotected.findLast(steps.hasCalls);
  for (const turn of unprotected) {
    if (draft.size <= target) break;
    if (turn.start < draft.collapsed || turn === last) continue;
    steps.collapseTurn(turn);
    draft.moveCollapsed(turn.next);
  }
  for (const turn of unprotected) {
    if (draft.size <= target) break;
    steps.clearTurn(turn, "inNeed");
  }
  protectLess(pass, options);
}

function protectLess({ draft, steps, budget }: Pass, { protect }: EconomicOptions): void {
  const need = runway * budget;
  for (const turns of [5, 3, 2, 1].filter((each) => each < protect.turns)) {
    const tokens = (protect.share * budget * turns) / protect.turns;
    for (const turn of steps.turns.slice(0, findFirstProtected(draft, steps, { turns, tokens }))) {
      if (draft.size <= need) return;
      if (turn.start < draft.boundary) continue;
      steps.clearTurn(turn, "inNeed");
      draft.moveBoundary(turn.next);
    }
  }
}

interface Reach {
  /** The number of turns, from the oldest, that are not protected. */
  readonly limit: number;
  readonly target: number;
}

/** Answers and user messages after the last removed exchange will not change either, so a cache marker may follow
 *  them. */
function skipSettled(draft: HistoryDraft, steps: TrimSteps): void {
  const open = steps.turns.find((turn) => turn.start >= draft.collapsed && steps.hasCalls(turn));
  draft.moveCollapsed(Math.min(open?.start ?? draft.boundary, draft.boundary));
}

/** The window is a hard limit: trims what is left if cutting by age was not enough. Older content is removed until the
 *  size is at most `goal`, and the newest exchange until it is at most `limit`. */
function squeeze(draft: HistoryDraft, steps: TrimSteps, { goal, limit }: { goal: number; limit: number }): void {
  steps.digest().drop();
  const older = steps.turns.slice(0, -1);
  const eachOlder = (step: (turn: Turn) => void): void => {
    for (const turn of older) {
      if (draft.size <= goal) return;
      step(turn);
      draft.moveBoundary(turn.next);
    }
  };
  eachOlder((turn) => steps.clearTurn(turn, "inNeed"));
  eachOlder((turn) => steps.collapseTurn(turn));
  steps.keepRolesApart();
  eachOlder((turn) => steps.clearTurn(turn, "everything"));
  eachOlder((turn) => steps.stubAnswer(turn));
  if (draft.size <= limit) return;
  steps.shortenNewest(limit, "results");
  steps.shortenNewest(limit, "own");
  steps.clearNewest(limit, "everything");
  steps.clearNewest(limit, "lastResort");
}

/** Keeps the exchanges that have placeholders. If they take more than `maxTokens`, the oldest are removed. Returns a
 *  function that adds a turn that was just cleared. */
function createTrace(draft: HistoryDraft, steps: TrimSteps, maxTokens: number): (turn: Turn) => void {
  const { messages, collapsed, boundary } = draft;
  const kept = steps.turns.filter(({ start }) => start >= collapsed && start < boundary);
  let tokens = 0;
  for (const turn of kept) tokens += weighTurn(messages, turn);
  const shrink = (): void => {
    while (tokens > maxTokens && kept.length > 1) {
      const [oldest, ...later] = kept as [Turn, ...Turn[]];
      // The digest needs a trimmed result to stand in.
      if (steps.hasCalls(oldest) && !later.some(steps.hasCalls)) return;
      kept.shift();
      tokens -= weighTurn(messages, oldest);
      steps.collapseTurn(oldest);
      draft.moveCollapsed(oldest.next);
    }
  };
  shrink();
  return (turn) => {
    kept.push(turn);
    tokens += weighTurn(messages, turn);
    shrink();
  };
}

/** Returns the tokens of a turn and its results as they are sent, without what the person wrote in between. */
function weighTurn(messages: readonly TrackedMessage[], { start, next }: Turn): number {
  let weight = 0;
  for (let index = start; index < next; index++) {
    const { original, tokens, sent } = messages[index] as TrackedMessage;
    if (sent === undefined) continue;
    weight += tokens;
    if (original.role === "assistant") continue;
    for (const part of original.parts) if (part.kind !== "tool_result") weight -= part.tokens;
  }
  return weight;
}

/** Returns the index of the first protected turn. The newest turn is always protected. Older ones are protected while
 *  their number and their tokens, with everything that follows, are within the limits. */
function findFirstProtected(
  { messages }: HistoryDraft,
  { turns }: TrimSteps,
  protection: { readonly turns: number; readonly tokens: number },
): number {
  let first = turns.length;
  let tokens = 0;
  let read = messages.length;
  while (first > 0 && turns.length - first < protection.turns) {
    const { start } = turns[first - 1] as TrimSteps["turns"][number];
    while (read > start) tokens += messages[--read]?.tokens ?? 0;
    if (first < turns.length && tokens > protection.tokens) break;
    first--;
  }
  return Math.min(first, Math.max(0, turns.length - 1));
}
