/** The steps of the economic policies: clear parts of a turn, remove whole exchanges, shorten the newest results. */
import type { CountedPart } from "../../../core/messages/index.ts";
import { readText } from "../apply-decisions.ts";
import type { ReplaceDecision } from "../decision-log.ts";
import { type Decide, decideParts, drop, type HistoryDraft, wholeMessage } from "../draft.ts";
import { createDescriber, type DescribePart, isPlaceholder, type PlaceholderStyle, plain } from "../placeholders.ts";
import type { TrackedMessage } from "../tracked-history.ts";
import type { Exchange, PartPlace, ReadTurns, Turn, Turns } from "../turns.ts";

/** The steps that one pass may take on a draft. */
export interface TrimSteps {
  readonly turns: readonly Turn[];
  hasCalls(turn: Turn): boolean;
  /** Replaces the parts of a turn that are larger than the level's limits. */
  clearTurn(turn: Turn, level: ClearingLevel): void;
  /** Clears the newest turn and its results part by part, until the size is at most `limit`. */
  clearNewest(limit: number, level: ClearingLevel): void;
  collapseTurn(turn: Turn): void;
  stubAnswer(turn: Turn): void;
  keepRolesApart(): void;
  /** Finds the digest of an earlier epoch. */
  digest(): DigestStep;
  /** Shortens the newest results, or the texts and inputs of the newest turn, until the size is at most `limit`. */
  shortenNewest(limit: number, which: NewestParts): void;
}

export interface ScopeOptions {
  readonly readTurns: ReadTurns;
  readonly excludeTools: ReadonlySet<string>;
  readonly keepInputs: ReadonlySet<string>;
  readonly isPinned: (message: object, index: number) => boolean;
  /** Which texts of user messages may be trimmed. */
  readonly isTrimmable: "machine-made" | ((message: object, index: number) => boolean);
  readonly placeholders: PlaceholderStyle;
}

/** What one pass may do. */
interface PassOptions extends ScopeOptions {
  readonly hasRecall: boolean;
}

/** Reads the turns of a draft and returns the steps of one pass over it. */
export function createTrimSteps(draft: HistoryDraft, options: PassOptions): TrimSteps {
  const scope = createScope(draft, options);
  return {
    turns: scope.turns.list,
    hasCalls: scope.turns.hasCalls,
    clearTurn: (turn, level) => clearTurn(draft, turn, scope, clearings[level]),
    clearNewest: (limit, level) => clearNewest(draft, scope, { limit, clearing: clearings[level] }),
    collapseTurn: (turn) => collapseTurn(draft, turn, scope),
    stubAnswer: (turn) => stubAnswer(draft, turn, scope),
    keepRolesApart: () => keepRolesApart(draft),
    digest: () => findDigest(draft, scope),
    shortenNewest: (limit, which) => shortenNewest(draft, findNewestParts(draft, scope, which), limit),
  };
}

/** From how many tokens a part is cleared, including its frame. Below that, a placeholder saves too little. */
interface Clearing {
  readonly result: number;
  readonly call: number;
  readonly text: number;
  /** The limit for texts that answer the person. Absent: the same as `text`. */
  readonly answer?: number;
  /** Whether a placeholder may describe what was there. If every token counts, it does not. */
  readonly isDescribed: boolean;
  /** Whether to drop the thinking of the turn in progress. Providers want it back unchanged, so it goes last. */
  readonly lastThinking: boolean;
}

const never = Number.POSITIVE_INFINITY;
const byAge: Clearing = { result: 200, call: 200, text: never, isDescribed: true, lastThinking: false };
const inNeed: Clearing = { result: 200, call: 200, text: 60, isDescribed: true, lastThinking: false };
/** Clears long answers to the person. */
const longAnswer: Clearing = { ...byAge, result: never, call: never, text: 300 };
/** One token more than a plain placeholder takes in the format where it takes most. */
const everything: Clearing = { result: 15, call: 31, text: 6, isDescribed: false, lastThinking: false };

/** How much may be cleared, from least to most. */
type ClearingLevel = "byAge" | "inNeed" | "everything" | "lastResort";
const clearings: Readonly<Record<ClearingLevel, Clearing>> = {
  byAge,
  inNeed,
  everything,
  lastResort: { ...everything, lastThinking: true },
};

/** Replaces the parts of a turn that may be trimmed: results, inputs and text with placeholders. Drops thinking. */
function clearTurn(draft: HistoryDraft, turn: Turn, scope: TrimScope, clearing: Clearing): void {
  const { answer: text = clearing.text } = clearing;
  const answer = text === clearing.text ? [] : scope.turns.answer(turn);
  const answers = new Set(answer.map(({ message, part }) => draft.messages[message]?.original.parts[part]));
  for (let index = turn.start; index < turn.next; index++) {
    if (scope.isPinned(index)) continue;
    decideParts(draft, index, (part, message) => {
      const limits = answers.has(part) ? { ...clearing, text } : clearing;
      return choose(part, index, { message, scope, clearing: limits });
    });
  }
}

/** Clears the newest turn and its results part by part, largest first, and only as much as needed. */
function clearNewest(
  draft: HistoryDraft,
  scope: TrimScope,
  { limit, clearing }: { readonly limit: number; readonly clearing: Clearing },
): void {
  const parts: (readonly [number, CountedPart])[] = [];
  for (let index = scope.lastTurn; index < draft.messages.length; index++) {
    if (scope.isPinned(index)) continue;
    for (const part of (draft.messages[index] as TrackedMessage).original.parts)
      if (index < scope.newest || !scope.isTrimmable(part, index)) parts.push([index, part]);
  }
  parts.sort(([, a], [, b]) => b.tokens - a.tokens);
  for (let next = 0; next < parts.length && draft.size > limit; ) {
    const [message, first] = parts[next++] as (typeof parts)[number];
    const together = new Set([first]);
    // A part saves less than its tokens. While these do not suffice, the next part is needed too, and parts of one
    // message are cleared at once: each change reads the whole message again.
    let missing = draft.size - limit - first.tokens;
    for (; missing > 0 && parts[next]?.[0] === message; next++) {
      const [, part] = parts[next] as (typeof parts)[number];
      together.add(part);
      missing -= part.tokens;
    }
    decideParts(draft, message, (part, tracked) =>
      together.has(part) ? choose(part, message, { message: tracked, scope, clearing }) : undefined,
    );
  }
}

function choose(
  part: CountedPart,
  index: number,
  {
    message,
    scope,
    clearing,
  }: { readonly message: TrackedMessage; readonly scope: TrimScope; readonly clearing: Clearing },
): Decide | undefined {
  const replace = (least: number): Decide | undefined => {
    if (part.tokens < least || isPlaceholder(part)) return undefined;
    const placeholder = scope.placeholder(part);
    return placeholder === undefined || clearing.isDescribed ? placeholder : plain;
  };
  if (part.kind === "tool_result" || scope.isTrimmable(part, index)) return replace(clearing.result);
  if (message.original.role !== "assistant") return undefined;
  if (part.kind === "tool_call") return replace(clearing.call);
  if (part.kind === "text") return replace(clearing.text);
  if (part.kind !== "thinking" || part.isBound === true) return undefined;
  return index < scope.lastTurn || clearing.lastThinking ? drop : undefined;
}

/** Removes a turn with its results. The answer to the person stays unless it is long, also beside tools of the
 *  provider. */
function collapseTurn(draft: HistoryDraft, turn: Turn, scope: TrimScope): void {
  const exchange = scope.exchange(turn);
  if (exchange === undefined && scope.turns.hasCalls(turn)) {
    clearTurn(draft, turn, scope, { ...inNeed, answer: longAnswer.text });
    // Nothing here changes again.
    for (let index = turn.start; index < turn.next; index++) dropDigest(draft, index);
    return;
  }
  if (exchange !== undefined) dropExchange(draft, exchange, scope.turns.answer(turn));
  clearTurn(draft, turn, scope, longAnswer);
}

/** Replaces an answer and the thinking that is bound to it with a short text. */
function stubAnswer(draft: HistoryDraft, { start, end }: Turn, scope: TrimScope): void {
  const turn = draft.messages.slice(start, end);
  const last = turn.at(-1);
  if (last !== undefined && wholeMessage.isStubbed(last)) return;
  const isPinned = turn.some((_message, index) => scope.isPinned(start + index));
  const parts = turn.flatMap(({ original }) => original.parts);
  if (isPinned || !parts.some(({ kind, isBound }) => kind === "thinking" && isBound === true)) return;
  if (!parts.every(({ kind }) => kind === "text" || kind === "thinking")) return;
  for (const [index, message] of turn.entries())
    if (message.sent !== undefined) dropParts(draft, start + index, message.original.parts.keys());
  wholeMessage.stub(draft, end - 1);
}

function dropExchange(draft: HistoryDraft, { turn, results }: Exchange, answer: readonly PartPlace[]): void {
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
    if (isBound) wholeMessage.detach(draft, index);
  }
  const byMessage = new Map<number, number[]>();
  for (const { message, part } of results) {
    const parts = byMessage.get(message);
    if (parts === undefined) byMessage.set(message, [part]);
    else parts.push(part);
  }
  for (const [index, parts] of byMessage) dropParts(draft, index, parts);
}

function dropParts(draft: HistoryDraft, index: number, parts: Iterable<number>): void {
  const { decisions } = draft.messages[index] as TrackedMessage;
  const dropped = new Map<number, Decide>();
  for (const part of parts) if (decisions.get(part)?.decision.action !== "drop") dropped.set(part, drop);
  if (dropped.size > 0) draft.decide(index, dropped);
}

/** Puts a short assistant text where two messages of others would become neighbours. */
function keepRolesApart(draft: HistoryDraft): void {
  let isAfterOther = false;
  let dropped: number | undefined;
  for (const [index, { original, sent }] of draft.messages.entries()) {
    const isAssistant = original.role === "assistant";
    if (sent === undefined) {
      if (isAssistant) dropped = index;
      continue;
    }
    // A system message in between belongs to the message before it. The assistant text goes after it.
    if (original.role === "system") continue;
    if (!isAssistant && isAfterOther && dropped !== undefined) wholeMessage.stub(draft, dropped);
    isAfterOther = !isAssistant;
    dropped = undefined;
  }
}

/** What a pass may do with the digest. */
interface DigestStep {
  /** The index of the message that has it, or the number of messages. */
  readonly placed: number;
  drop(): void;
  /** Puts it into the last trimmed result that may still change. Does nothing if there is none. */
  place(digest: string): void;
}

function findDigest(draft: HistoryDraft, scope: TrimScope): DigestStep {
  const placed = draft.messages.findIndex(({ decisions }, index) => {
    if (index < scope.settled || decisions.size === 0) return false;
    for (const { decision } of decisions.values())
      if (decision.action === "replace" && decision.digest !== undefined) return true;
    return false;
  });
  return {
    placed: placed < 0 ? draft.messages.length : placed,
    drop() {
      if (placed >= 0) dropDigest(draft, placed);
    },
    place(digest) {
      const host = findDigestHost(draft, scope);
      if (host === undefined) return;
      const { message, part, decide } = host;
      draft.decide(message, new Map([[part, (createId) => ({ ...decide(createId), digest })]]));
    },
  };
}

function dropDigest(draft: HistoryDraft, index: number): void {
  for (const { part, decision } of draft.messages[index]?.decisions.values() ?? []) {
    if (decision.action !== "replace" || decision.digest === undefined) continue;
    const { digest: _gone, ...rest } = decision;
    draft.decide(index, new Map([[part, () => rest]]));
  }
}

interface DigestHost extends PartPlace {
  /** Returns its decision without the digest. */
  readonly decide: (createId: () => string) => ReplaceDecision;
  readonly isTrimmed: boolean;
}

/** Returns the last trimmed result before the boundary, or else the last one that may be trimmed. */
function findDigestHost(draft: HistoryDraft, scope: TrimScope): DigestHost | undefined {
  let last: DigestHost | undefined;
  for (let message = draft.boundary - 1; message >= draft.collapsed; message--) {
    for (const host of listHosts(draft, message, scope)) {
      if (host.isTrimmed) return host;
      last ??= host;
    }
  }
  return last;
}

function listHosts(draft: HistoryDraft, message: number, scope: TrimScope): DigestHost[] {
  const { original, decisions, sent } = draft.messages[message] as TrackedMessage;
  if (sent === undefined || scope.isPinned(message)) return [];
  return original.parts.flatMap((read, part): DigestHost[] => {
    const placeholder = read.kind === "tool_result" ? scope.placeholder(read) : undefined;
    const decision = decisions.get(part)?.decision;
    if (placeholder === undefined) return [];
    if (decision === undefined) return [{ message, part, decide: placeholder, isTrimmed: false }];
    return decision.action === "replace" ? [{ message, part, decide: () => decision, isTrimmed: true }] : [];
  });
}

/** Cuts the newest parts to what fits: all to one size, keeping their beginning and end. */
function shortenNewest(draft: HistoryDraft, parts: readonly LongPart[], budget: number): void {
  if (parts.length === 0) return;
  const minKeptTokens = 100;
  // The tokens of the note about the missing text and of the frame around it.
  const noteTokens = 60;
  const whole = parts.reduce((sum, { tokens }) => sum + tokens, 0);
  let room = whole - (draft.size - budget);
  // Tokens are not spread evenly over a text, so the first cut may leave too much.
  for (let attempt = 0; attempt < 4 && draft.size > budget; attempt++) {
    const limit = Math.floor(findPartLimit(parts, room) - noteTokens);
    // A result may still be cleared. A user message that a program wrote is never erased, so it is cut as far as it goes.
    const kept = Math.max(limit, minKeptTokens);
    const cut = parts.filter(({ tokens, isErasable }) => tokens > kept + noteTokens && (limit === kept || !isErasable));
    cutAll(draft, cut, kept);
    if (limit < kept) return;
    room -= draft.size - budget;
  }
}

interface LongPart {
  readonly message: number;
  readonly part: number;
  readonly tokens: number;
  readonly text: string;
  /** Whether a placeholder may replace it if it is too large even when it is cut. */
  readonly isErasable: boolean;
}

/** The results that the assistant has not seen yet, or what it said and called in its newest turn. */
type NewestParts = "results" | "own";
const newestKinds: Readonly<Record<NewestParts, ReadonlySet<CountedPart["kind"]>>> = {
  results: new Set(["tool_result"]),
  own: new Set(["text", "tool_call"]),
};

/** Returns the parts that are still whole. A part without text, such as an image, cannot be shortened. */
function findNewestParts(draft: HistoryDraft, scope: TrimScope, which: NewestParts): LongPart[] {
  const parts: LongPart[] = [];
  const [first, end] = which === "own" ? [scope.lastTurn, scope.newest] : [scope.newest, draft.messages.length];
  for (let message = first; message < end; message++) {
    const { original, decisions } = draft.messages[message] as TrackedMessage;
    if (scope.isPinned(message)) continue;
    for (const [part, read] of original.parts.entries()) {
      const isErasable = newestKinds[which].has(read.kind);
      const isOne = isErasable || (which === "results" && scope.isTrimmable(read, message));
      if (!isOne || decisions.has(part) || scope.placeholder(read) === undefined) continue;
      const text = readText(read);
      if (text !== "") parts.push({ message, part, tokens: read.tokens, text, isErasable });
    }
  }
  return parts;
}

/** Returns the size limit with which all parts together fit. What small ones do not use is shared among the larger. */
function findPartLimit(parts: readonly LongPart[], room: number): number {
  let left = room;
  const sizes = parts.map(({ tokens }) => tokens).sort((a, b) => a - b);
  for (const [index, tokens] of sizes.entries()) {
    const share = left / (sizes.length - index);
    if (tokens > share) return share;
    left -= tokens;
  }
  return Number.POSITIVE_INFINITY;
}

/** Parts of one message are cut at once, because each change reads the whole message again. */
function cutAll(draft: HistoryDraft, parts: readonly LongPart[], keptTokens: number): void {
  const byMessage = new Map<number, Map<number, Decide>>();
  for (const { message, part, tokens, text } of parts) {
    const characters = Math.floor((text.length * keptTokens) / tokens);
    const head = Math.floor(characters * 0.7);
    const decisions = byMessage.get(message) ?? new Map<number, Decide>();
    byMessage.set(
      message,
      decisions.set(part, () => ({ action: "shorten", head, tail: characters - head })),
    );
  }
  for (const [message, decisions] of byMessage) draft.decide(message, decisions);
}

/** What one pass may change. It looks at the whole history once, so each pass creates a new one. */
interface TrimScope {
  readonly turns: Turns;
  /** The index up to which nothing changes any more. */
  readonly settled: number;
  /** The index of the first message of the last assistant turn. */
  readonly lastTurn: number;
  /** The index of the first message after that turn: content that the assistant has not seen yet. */
  readonly newest: number;
  isPinned(index: number): boolean;
  /** Whether the part is a text in a user message that may be trimmed. */
  isTrimmable(part: CountedPart, index: number): boolean;
  /** Returns the decision to put a placeholder, or undefined if the part must stay. */
  placeholder(part: CountedPart): ReturnType<DescribePart> | undefined;
  /** Returns the turn with its results if they may be removed as a whole. */
  exchange(turn: Turn): Exchange | undefined;
}

function createScope({ messages, collapsed }: HistoryDraft, options: PassOptions): TrimScope {
  const describe = createDescriber(options.placeholders, options.hasRecall);
  const turns = options.readTurns(messages, collapsed);
  const last = turns.list.at(-1);
  const isPinned = (index: number): boolean => {
    const source = messages[index]?.source;
    return source !== undefined && options.isPinned(source, index);
  };
  const isExcluded = (part: CountedPart): boolean => {
    if (options.excludeTools.size === 0) return false;
    const name = (turns.findCall(part) ?? part).toolName;
    return name !== undefined && options.excludeTools.has(name);
  };
  return {
    turns,
    settled: collapsed,
    lastTurn: last?.start ?? 0,
    newest: last?.end ?? 0,
    isPinned,
    isTrimmable(part, index) {
      const message = messages[index];
      if (part.kind !== "text" || message?.original.role !== "user") return false;
      const { isTrimmable } = options;
      return isTrimmable === "machine-made" ? isMachineMade(readText(part)) : isTrimmable(message.source, index);
    },
    placeholder(part) {
      const keepsInput = part.kind === "tool_call" && options.keepInputs.has(part.toolName ?? "");
      return keepsInput || isExcluded(part) ? undefined : describe(part, turns.findCall);
    },
    exchange(turn) {
      const exchange = turns.exchange(turn);
      // A system message inside a conversation needs the message before it.
      const isNeeded = messages.slice(turn.end, turn.next).some(({ original }) => original.role === "system");
      if (exchange === undefined || isNeeded) return undefined;
      for (let index = exchange.turn.start; index < turn.end; index++) {
        if (isPinned(index) || messages[index]?.original.parts.some(isExcluded)) return undefined;
      }
      return exchange.results.some(({ message }) => isPinned(message)) ? undefined : exchange;
    },
  };
}

/** Whether a text consists only of blocks that coding agents put into user messages themselves (Claude Code, 2026-11). */
function isMachineMade(text: string): boolean {
  const machineTags = ["task-notification", "system-reminder"];
  let rest = text.trim();
  if (rest === "") return false;
  while (rest !== "") {
    const tag = machineTags.find((each) => rest.startsWith(`<${each}>`));
    const end = tag === undefined ? -1 : rest.indexOf(`</${tag}>`);
    if (tag === undefined || end < 0) return false;
    rest = rest.slice(end + tag.length + 3).trimStart();
  }
  return true;
}
