/** The RFC's trimming for any message format. One boundary only moves forward; everything that the assistant and its
 *  tools said before it is replaced with placeholders. `rfc-headroom` has a lower target, so that the boundary stays
 *  for several turns. */

import { Buffer } from "../../../core/bytes.ts";
import {
  type CountedMessage,
  type CountedPart,
  isSameJson,
  type MessageLens,
  type PartEdit,
} from "../../../core/messages/index.ts";
import { decideParts, drop, type HistoryDraft } from "../draft.ts";
import { plain, plainPlaceholder } from "../placeholders.ts";
import { advanceBoundary, budgetThreshold, firstBeyond, isTrimmable } from "../rfc-boundary.ts";
import { finalEstimate, rfcCosts } from "../rfc-message.ts";
import { removeCheckpointTags } from "../rfc-repairs.ts";
import { dropBoundThinking } from "./bound-thinking.ts";
import type { Policy } from "./policy.ts";

export interface RfcPolicyOptions {
  readonly keep: number;
  /** The share of the budget above which messages are trimmed. */
  readonly threshold: number;
  /** Whether thinking is tied to everything before it, so that an edit also removes the thinking that follows. */
  readonly bindsThinking: boolean;
  /** Trims further than the threshold, and leaves alone what a placeholder would make longer. */
  readonly hasHeadroom: boolean;
}

export function createRfcPolicy(options: RfcPolicyOptions): Policy {
  const { keep, hasHeadroom } = options;
  const known: Estimates = { roles: [], full: [], trimmed: [], sums: { full: [0], trimmed: [0] } };
  return {
    // A model that binds thinking gets its messages unprepared. Its thinking is valid only after the bytes from which
    // it was made, and a history does not show whether these were prepared.
    ...(!options.bindsThinking && { prepare: createPreparation() }),
    decide(draft, { budget, toolTokens, unchanged, trimmedBefore = 0 }) {
      estimateNew(known, draft, { unchanged, hasHeadroom });
      const threshold = budgetThreshold(budget + toolTokens, options.threshold);
      const target = hasHeadroom ? headroomTarget(threshold) : threshold;
      const estimate = (rawTokens: number): number => finalEstimate(rawTokens) + toolTokens;
      const previous = Math.max(draft.boundary, Math.min(trimmedBefore, draft.messages.length));
      const { roles, full, trimmed, sums } = known;
      const input = { roles, full, trimmed, sums, previous, keep, estimate, threshold, target };
      const { boundary, tokens } = advanceBoundary(input);
      const outgrownAt = boundary > draft.boundary ? firstBeyond(input) : undefined;
      for (let index = draft.boundary; index < boundary; index++)
        if (!hasHeadroom || isLonger(known, index)) trimMessage(draft, index);
      if (options.bindsThinking) dropBoundThinking(draft);
      draft.moveBoundary(boundary);
      return { threshold, outgrownAt, excess: tokens > threshold ? { tokens, limit: threshold } : undefined };
    },
  };
}

/** The estimates of each message. They are kept, so that a call costs only what is new. */
interface Estimates {
  readonly roles: ("system" | "user" | "assistant" | "tool")[];
  readonly full: number[];
  readonly trimmed: number[];
  readonly sums: { readonly full: number[]; readonly trimmed: number[] };
}

function estimateNew(
  { roles, full, trimmed, sums }: Estimates,
  { messages }: HistoryDraft,
  { unchanged, hasHeadroom }: { unchanged: number; hasHeadroom: boolean },
): void {
  roles.length = full.length = trimmed.length = Math.min(roles.length, unchanged);
  sums.full.length = sums.trimmed.length = roles.length + 1;
  for (const { source, original } of messages.slice(roles.length)) {
    const estimate = estimateMessage(original, source);
    roles.push(estimate.role);
    full.push(estimate.full);
    const short = hasHeadroom ? Math.min(estimate.full, estimate.trimmed) : estimate.trimmed;
    trimmed.push(short);
    sums.full.push((sums.full.at(-1) ?? 0) + estimate.full);
    sums.trimmed.push((sums.trimmed.at(-1) ?? 0) + (isTrimmable(estimate.role) ? short : estimate.full));
  }
}

function isLonger({ full, trimmed }: Estimates, index: number): boolean {
  return (full[index] ?? 0) > (trimmed[index] ?? 0);
}

function trimMessage(draft: HistoryDraft, index: number): void {
  decideParts(draft, index, (part, { original }) => {
    if (isResult(part)) return plain;
    if (original.role !== "assistant" && original.role !== "tool") return undefined;
    if (part.kind === "text") return plain;
    return part.kind === "thinking" && part.isBound !== true ? drop : undefined;
  });
}

/** The RFC knows results of tools only. What a program wrote into a user message is the user's. */
function isResult({ kind, isFramed }: CountedPart): boolean {
  return kind === "tool_result" && isFramed !== true;
}

/** Estimates a message of any format as the RFC does. For the RFC's own shape the result equals that of `countTokens`. The
 *  role is `tool` for results, in whatever role the format puts them. */
function estimateMessage(
  { role, parts }: CountedMessage,
  source: object,
): { readonly role: CountedMessage["role"]; readonly full: number; readonly trimmed: number } {
  const isPlain = "content" in source && typeof source.content === "string";
  const overhead = isPlain ? 0 : rfcCosts.part;
  let full = rfcCosts.message;
  let trimmed = rfcCosts.message;
  let hasResult = false;
  for (const part of parts) {
    const tokens = estimatePart(part);
    full += overhead + tokens;
    const isDropped = part.kind === "thinking" && role === "assistant" && part.isBound !== true;
    trimmed += isDropped ? 0 : overhead + (placeholderTokens(part, role) ?? tokens);
    hasResult ||= isResult(part);
  }
  return { role: hasResult && role !== "assistant" ? "tool" : role, full, trimmed };
}

function estimatePart(part: CountedPart): number {
  let bytes = isResult(part) ? rfcCosts.wrapperBytes : 0;
  let pictures = 0;
  for (const piece of part.pieces) {
    if (piece.kind === "tool_call") {
      const json = typeof piece.args === "string" ? piece.args : (JSON.stringify(piece.args) ?? "");
      bytes += Buffer.byteLength(piece.name) + Buffer.byteLength(json) + rfcCosts.wrapperBytes;
    } else if ("text" in piece) bytes += Buffer.byteLength(piece.text);
    if (piece.kind === "image" || piece.kind === "document") pictures++;
  }
  return rfcCosts.ofBytes(bytes) + rfcCosts.image * pictures;
}

/** Returns undefined for a part that trimming does not change. */
function placeholderTokens(part: CountedPart, role: string): number | undefined {
  if (isResult(part)) return rfcCosts.ofBytes(Buffer.byteLength(plainPlaceholder) + rfcCosts.wrapperBytes);
  return part.kind === "text" && (role === "assistant" || role === "tool")
    ? rfcCosts.ofBytes(Buffer.byteLength(plainPlaceholder))
    : undefined;
}

/** Does what the RFC does before it counts, for any format: removes checkpoint tags, merges neighbours of the same
 *  role, and keeps the last of two results for one call. The work per call grows with what is new. */
export function createPreparation(): Required<Policy>["prepare"] {
  let state = startWith(undefined);
  return ({ messages, known }, lens) => {
    if (state.lens !== lens) state = startWith(lens);
    const { prepared, sources, starts, joined } = state;
    const common = Math.min(prepared.length, messages.length);
    const first = Math.min(known, common);
    // Clients edit their newest messages in place. Those that were the newest on the previous call are read again.
    const settled = Math.max(first, common - 8);
    const knownJoined = state.places[first] ?? joined.length;
    const same = followSame(state, messages, { first, settled });
    const from = firstOfRun(starts, same);
    joined.length = starts[from] ?? 0;
    starts.length = state.places.length = from;
    for (let index = same; index < messages.length; index++) {
      const source = messages[index] as object;
      if (index >= settled || !followOne(prepared[index] as Prepared, source))
        prepared[index] = prepareOne(source, index, lens);
      sources[index] = source;
    }
    prepared.length = sources.length = messages.length;
    const kept = Math.min(joined.length, knownJoined);
    joinRuns(state, lens);
    return { messages: joined, known: kept };
  };
}

interface State {
  readonly lens: MessageLens | undefined;
  readonly prepared: Prepared[];
  /** The source of each. A separate list, because every call iterates over it. */
  readonly sources: object[];
  /** For each message, the number of joined messages before the run of its role. */
  readonly starts: number[];
  /** For each message, the index of the joined message that contains it. */
  readonly places: number[];
  readonly joined: object[];
}

interface Prepared {
  source: object;
  message: object;
  readonly role: CountedMessage["role"];
  /** What to send if only checkpoint tags were in the message, and in its neighbours of the same role. Providers reject
   *  a message without content. */
  readonly placeholder?: object | undefined;
}

function startWith(lens: MessageLens | undefined): State {
  return { lens, prepared: [], sources: [], starts: [], places: [], joined: [] };
}

/** Counts how many messages from the start did not change. Equal content in another object counts, and replaces the
 *  earlier object. */
function followSame(
  state: State,
  messages: readonly object[],
  { first, settled }: { readonly first: number; readonly settled: number },
): number {
  const { prepared, sources, places, joined } = state;
  let index = first;
  while (index < settled && sources[index] === messages[index]) index++;
  for (; index < settled; index++) {
    const known = prepared[index] as Prepared;
    const { message } = known;
    if (!followOne(known, messages[index] as object)) break;
    sources[index] = known.source;
    const place = places[index] ?? -1;
    if (joined[place] === message) joined[place] = known.message;
  }
  return index;
}

/** Returns the start of the run that ends at `count`, because that run may continue after it. */
function firstOfRun(starts: readonly number[], count: number): number {
  let first = Math.min(count, starts.length);
  const start = starts[first - 1];
  while (first > 0 && starts[first - 1] === start) first--;
  return first;
}

/** Takes equal content from another object. Works in place, because a history that is parsed again has thousands. */
function followOne(known: Prepared, source: object): boolean {
  if (known.source === source) return true;
  if (!isSameJson(known.source, source)) return false;
  if (known.message === known.source) known.message = source;
  known.source = source;
  return true;
}

function prepareOne(source: object, index: number, lens: MessageLens): Prepared {
  const { role, parts } = lens.read(source, index);
  const edits = new Map([...tagEdits(parts), ...repeatEdits(parts)]);
  if (edits.size === 0) return { source, role, message: source };
  const message = lens.edit(source, edits);
  if (message !== undefined) return { source, role, message };
  const placeholder = lens.edit(source, edits.set(0, replaceWith(plainPlaceholder)));
  return { source, role, message: { ...source, content: "" }, placeholder };
}

function* tagEdits(parts: CountedMessage["parts"]): Generator<[number, PartEdit]> {
  const hasThinking = parts.some(({ kind }) => kind === "thinking");
  for (const [at, { kind, pieces }] of parts.entries()) {
    const [piece] = pieces;
    if (pieces.length !== 1 || piece === undefined || !("text" in piece)) continue;
    if (kind !== "text" && kind !== "tool_result") continue;
    const text = removeCheckpointTags(piece.text);
    if (text !== piece.text) yield [at, text === "" && kind === "text" ? emptiedText(hasThinking) : replaceWith(text)];
  }
}

/** Providers reject an empty text, but not an empty result, and thinking must not be the last part of a message. */
function emptiedText(hasThinking: boolean): PartEdit {
  return hasThinking ? replaceWith(plainPlaceholder) : { action: "drop" };
}

function replaceWith(text: string): PartEdit {
  return { action: "replace", text };
}

function* repeatEdits(parts: CountedMessage["parts"]): Generator<[number, PartEdit]> {
  const last = new Map<string, number>();
  for (const [at, { kind, callId }] of parts.entries()) {
    if (kind !== "tool_result" || callId === undefined) continue;
    const earlier = last.get(callId);
    if (earlier !== undefined) yield [earlier, { action: "drop" }];
    last.set(callId, at);
  }
}

/** Joins the messages after the runs that are already joined. */
function joinRuns({ prepared, starts, places, joined }: State, lens: MessageLens): void {
  while (starts.length < prepared.length) {
    const { message, role, placeholder: own } = prepared[starts.length] as Prepared;
    let placeholder = own;
    const start = joined.length;
    joined.push(message);
    starts.push(start);
    places.push(start);
    const merging = new Set<number>();
    for (let next = prepared[starts.length]; next?.role === role; next = prepared[starts.length]) {
      const merged = mergeTwo(joined.at(-1) as object, next.message, lens);
      if (merged === undefined) joined.push(next.message);
      else {
        joined[joined.length - 1] = merged;
        merging.add(joined.length - 1);
      }
      placeholder ??= next.placeholder;
      starts.push(start);
      places.push(joined.length - 1);
    }
    // Once for all that was merged: it reads the whole message. Index 1: for the counter's cache, index 0 would start a
    // conversation.
    for (const place of merging) joined[place] = prepareOne(joined[place] as object, 1, lens).message;
    if (placeholder !== undefined && isEmpty(joined.at(-1) as object)) joined[joined.length - 1] = placeholder;
  }
}

/** Merges as `mergeConsecutiveSameRole` does: an empty text adds no part. */
function mergeTwo(first: object, second: object, lens: MessageLens): object | undefined {
  const merged = lens.merge(first, second) as { readonly content?: unknown } | undefined;
  if (!Array.isArray(merged?.content) || !(isBlank(first) || isBlank(second))) return merged;
  const { length } = merged.content;
  const content = merged.content.slice(Number(isBlank(first)), isBlank(second) ? length - 1 : length);
  return { ...merged, content };
}

function isBlank(message: object): boolean {
  return "content" in message && message.content === "";
}

function isEmpty(message: object): boolean {
  const { content } = message as { readonly content?: unknown };
  return content === "" || (Array.isArray(content) && content.length === 0);
}

/** Trimming only to the threshold would move the boundary, and so break the cache, on every later turn. */
export function headroomTarget(threshold: number): number {
  return Math.floor(threshold * 0.75);
}
