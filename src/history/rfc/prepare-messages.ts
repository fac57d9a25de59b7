/** What the RFC does before it counts, over any format: checkpoint tags go, neighbours of one role become one message, of two results
 *  for one call the last stays. Work per call grows with what is new. */
import { type CountedMessage, isSameJson, type MessageLens, type PartEdit } from "../../messages/index.ts";
import { checkpointTag } from "./reduce-context.ts";
import { removeXmlTag } from "./remove-xml-tag.ts";

export function createPreparation(): (messages: readonly object[], lens: MessageLens) => readonly object[] {
  let state = startWith(undefined);
  return (messages, lens) => {
    if (state.lens !== lens) state = startWith(lens);
    const { prepared, starts, joined } = state;
    const settled = Math.min(prepared.length, messages.length) - edited;
    const same = followSame(state, messages, settled);
    const from = firstOfRun(starts, same);
    joined.length = starts[from] ?? 0;
    starts.length = state.places.length = from;
    for (let index = same; index < messages.length; index++) {
      const source = messages[index] as object;
      if (index >= settled || !followOne(prepared[index] as Prepared, source))
        prepared[index] = prepareOne(source, index, lens);
    }
    prepared.length = messages.length;
    joinRuns(state, lens);
    return joined;
  };
}

// Clients do edit their newest messages in place: those that were the newest on the call before are looked at again.
const edited = 8;

interface State {
  readonly lens: MessageLens | undefined;
  readonly prepared: Prepared[];
  /** For each message, how many joined ones come before the run of one role that it is in. */
  readonly starts: number[];
  /** For each message, the index of the joined one that it is in. */
  readonly places: number[];
  readonly joined: object[];
}

interface Prepared {
  source: object;
  message: object;
  readonly role: CountedMessage["role"];
}

function startWith(lens: MessageLens | undefined): State {
  return { lens, prepared: [], starts: [], places: [], joined: [] };
}

/** How many messages from the beginning are as they were, be it as other objects, which then take the place of the former ones. */
function followSame(state: State, messages: readonly object[], settled: number): number {
  const { prepared, places, joined } = state;
  let index = 0;
  while (index < settled && prepared[index]?.source === messages[index]) index++;
  for (; index < settled; index++) {
    const known = prepared[index] as Prepared;
    const { message } = known;
    if (!followOne(known, messages[index] as object)) break;
    const place = places[index] ?? -1;
    if (joined[place] === message) joined[place] = known.message;
  }
  return index;
}

/** The run that ends at `count` may go on behind it. */
function firstOfRun(starts: readonly number[], count: number): number {
  let first = Math.min(count, starts.length);
  const start = starts[first - 1];
  while (first > 0 && starts[first - 1] === start) first--;
  return first;
}

/** Takes the same content as another object; in place, since a history that is parsed anew has thousands of these. */
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
  return { source, role, message: edits.size === 0 ? source : (lens.edit(source, edits) ?? source) };
}

function* tagEdits(parts: CountedMessage["parts"]): Generator<[number, PartEdit]> {
  for (const [at, { kind, pieces }] of parts.entries()) {
    const [piece] = pieces;
    if (pieces.length !== 1 || piece === undefined || !("text" in piece)) continue;
    if (kind !== "text" && kind !== "tool_result") continue;
    const text = removeXmlTag(checkpointTag, piece.text);
    if (text !== piece.text) yield [at, { action: "replace", text }];
  }
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

/** Joins what comes behind the runs that are joined already. */
function joinRuns({ prepared, starts, places, joined }: State, lens: MessageLens): void {
  while (starts.length < prepared.length) {
    const { message, role } = prepared[starts.length] as Prepared;
    const start = joined.length;
    joined.push(message);
    starts.push(start);
    places.push(start);
    for (let next = prepared[starts.length]; next?.role === role; next = prepared[starts.length]) {
      const merged = mergeTwo(joined.at(-1) as object, next.message, lens);
      if (merged === undefined) joined.push(next.message);
      // Index 1: a merged message is never the beginning of a conversation for the counter's cache.
      else joined[joined.length - 1] = prepareOne(merged, 1, lens).message;
      starts.push(start);
      places.push(joined.length - 1);
    }
  }
}

/** As `mergeConsecutiveSameRole` does it: an empty text adds no part. */
function mergeTwo(first: object, second: object, lens: MessageLens): object | undefined {
  const merged = lens.merge(first, second) as { readonly content?: unknown } | undefined;
  if (!Array.isArray(merged?.content) || !(isEmpty(first) || isEmpty(second))) return merged;
  const { length } = merged.content;
  const content = merged.content.slice(Number(isEmpty(first)), isEmpty(second) ? length - 1 : length);
  return { ...merged, content };
}

function isEmpty(message: object): boolean {
  return "content" in message && message.content === "";
}
