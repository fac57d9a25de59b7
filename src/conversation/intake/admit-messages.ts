/** Admits the tool results of a history, each once. What was admitted keeps its text in later requests, until a trim
 *  removes the text that it refers to. */
import { type CountedPart, inputOf, isGivenId, type MessageLens, type PartEdit } from "../../core/messages/index.ts";
import type { Store } from "../../core/store/index.ts";
import type { HeldLines, IncomingResult, Intake } from "./intake.ts";
import { contextCollection } from "./originals.ts";

export interface MessageIntake {
  /** Returns the messages to send: each tool result has the text that the intake returned for it. Messages that do not
   *  change are the same objects. `known` is how many messages at the start are those of the previous call. A replay
   *  passes it to skip them, and then the returned list is valid only until the next call. */
  admit(messages: readonly object[], known?: number): Promise<readonly object[]>;
  /** Takes the messages that are left after a trim. If a shortened result refers to a text that the trim removed, the
   *  result gets its original text back. Returns whether any result did: then call `admit` again. */
  restore(sent: readonly object[]): Promise<boolean>;
  /** Returns what another process needs to continue with the same texts. The keys must be texts. */
  save(): SavedAdmissions;
}

export interface MessageIntakeOptions {
  /** Names each message of a history. A message with a known name keeps what was decided for it.
   *  @default the objects themselves */
  readonly keysOf?: ((messages: readonly object[]) => readonly unknown[]) | undefined;
  readonly saved?: SavedAdmissions | undefined;
}

export interface SavedAdmissions {
  readonly messages: readonly (readonly [key: unknown, message: SavedMessage])[];
  readonly places: readonly ResultPlace[];
  /** The last message of the last history. */
  readonly last: unknown;
}

interface SavedMessage {
  /** The new text of results, by part. */
  readonly texts: readonly (readonly [part: number, text: string])[];
  /** The calls of these results. */
  readonly calls: readonly string[];
  /** What these results refer to. */
  readonly bases: readonly Base[];
  /** Whether these results have their original texts again. Earlier versions stored no `restoredIn`: then this applies
   *  to every history. */
  readonly isRestored: boolean;
  /** The histories in which these results have their original texts again. */
  readonly restoredIn?: readonly HistoryEnd[] | undefined;
}

/** The last message of a history, by its index and name. Longer histories that have this message have the same past. */
interface HistoryEnd {
  readonly index: number;
  readonly key: unknown;
}

/** For one result: the message that has it, and the message with its call. */
interface ResultPlace {
  readonly result: unknown;
  readonly call?: unknown;
}

interface AdmittedMessage {
  /** The newest object with this name, and what is sent for it. */
  source?: object;
  sent?: object;
  readonly texts: Map<number, string>;
  readonly calls: string[];
  readonly bases: Base[];
  isRestored: boolean;
  /** The histories in which the results have their original texts again. After a rewind or a fork to before the trim,
   *  the shortened texts are sent again, because the model's thinking was made from them. */
  restoredIn: readonly HistoryEnd[];
}

/** A text that a shortened result refers to: an earlier result by its number, or the input of its call. */
type Base = Pick<HeldLines, "sequence" | "isWritten">;

export function createMessageIntake(
  lens: MessageLens,
  intake: Intake,
  { keysOf = (messages) => messages, saved }: MessageIntakeOptions = {},
): MessageIntake {
  const state: State = {
    lens,
    intake,
    keysOf,
    calls: new Map(),
    admitted: new Map(
      saved?.messages.map(([key, { texts, calls, bases, isRestored, restoredIn = [] }]) => [
        key,
        { texts: new Map(texts), calls: [...calls], bases: [...bases], isRestored, restoredIn },
      ]),
    ),
    places: [...(saved?.places ?? [])],
    last: saved?.last,
    restored: new Set(),
    followed: { sources: [], keys: [], sent: [] },
  };
  for (const message of state.admitted.values()) if (message.restoredIn.length > 0) state.restored.add(message);
  return {
    async admit(messages, known) {
      const sent = await admitAll(state, messages, known);
      return known === undefined ? sent.slice() : sent;
    },
    restore: (sent) => restoreOriginals(state, sent),
    save: () => ({
      messages: [...state.admitted].map(([key, { texts, calls, bases, isRestored, restoredIn }]) => [
        key,
        { texts: [...texts], calls, bases, isRestored, ...(restoredIn.length > 0 && { restoredIn }) },
      ]),
      places: state.places,
      last: state.last,
    }),
  };
}

interface State {
  readonly lens: MessageLens;
  readonly intake: Intake;
  readonly keysOf: (messages: readonly object[]) => readonly unknown[];
  readonly admitted: Map<unknown, AdmittedMessage>;
  /** The calls as the intake gets them, and the messages that have them. */
  readonly calls: Map<string, { readonly incoming: Omit<IncomingResult, "text">; readonly message?: unknown }>;
  /** `places[0]` belongs to result number 1. */
  readonly places: ResultPlace[];
  last: unknown;
  /** The messages that have their originals again in some history. */
  readonly restored: Set<AdmittedMessage>;
  /** The last history, and what is sent for it. A call does not look up again what is the same as before. */
  readonly followed: { readonly sources: object[]; readonly keys: unknown[]; readonly sent: object[] };
}

async function admitAll(state: State, messages: readonly object[], known = 0): Promise<readonly object[]> {
  const { last, intake } = state;
  const keys = state.keysOf(messages);
  // After a rewind or a fork, the context has only what this history has.
  if (last !== undefined && keys.lastIndexOf(last) < 0) {
    const branch = new Set(keys);
    await intake.forget((text) => branch.has(findKey(state, text)));
  }
  state.last = keys.at(-1);
  updateRestored(state, keys);
  const { followed } = state;
  for (let index = Math.min(known, followed.sources.length); index < messages.length; index++) {
    const source = messages[index] as object;
    const key = keys[index];
    if (followed.sources[index] === source && followed.keys[index] === key) continue;
    const place = { source, index, key };
    const known = state.admitted.get(key);
    if (known !== undefined) refreshMessage(state, known, place);
    const message = known ?? (await admitMessage(state, place));
    state.admitted.set(key, message);
    followed.sources[index] = source;
    followed.keys[index] = key;
    followed.sent[index] = message.sent ?? source;
  }
  for (const list of Object.values(followed)) list.length = messages.length;
  return followed.sent;
}

/** Decides which results have their original texts in this history: those that refer to a text which a trim removed, in
 *  this history or in one that it continues. */
function updateRestored(state: State, keys: readonly unknown[]): void {
  for (const message of state.restored) {
    const isRestored = message.restoredIn.some(({ index, key }) => keys[index] === key);
    if (message.isRestored === isRestored) continue;
    message.isRestored = isRestored;
    if (message.source !== undefined) message.sent = applyTexts(message, message.source, state.lens);
    state.followed.sources.length = 0;
  }
}

interface MessagePlace {
  readonly source: object;
  readonly index: number;
  readonly key: unknown;
}

async function admitMessage(state: State, place: MessagePlace): Promise<AdmittedMessage> {
  const { source, key } = place;
  const message: AdmittedMessage = {
    source,
    texts: new Map(),
    calls: [],
    bases: [],
    isRestored: false,
    restoredIn: [],
  };
  for (const [index, part] of readParts(state, place).entries()) {
    const text = readResultText(part);
    if (text === undefined) continue;
    const { callId = "", toolName = "tool" } = part;
    const { incoming, message: call } = state.calls.get(callId) ?? { incoming: { tool: toolName } };
    const result = await state.intake.admit({ ...incoming, text, ...(isGivenId(callId) && { callId }) });
    state.places.push({ result: key, call });
    if (result.edit === "none") continue;
    message.texts.set(index, result.text);
    message.calls.push(JSON.stringify(incoming));
    if (result.same !== undefined) message.bases.push({ sequence: result.same, isWritten: false });
    for (const { sequence, isWritten, by } of result.held ?? []) {
      message.bases.push({ sequence, isWritten });
      if (by !== undefined) message.bases.push({ sequence: by, isWritten: false });
    }
  }
  message.sent = applyTexts(message, source, state.lens);
  return message;
}

/** Reads a message and remembers its calls, because results name only the id of a call. */
function readParts({ lens, calls }: State, { source, index, key }: MessagePlace): readonly CountedPart[] {
  const { parts } = lens.read(source, index);
  for (const part of parts) {
    const { kind, callId = "", toolName = "tool" } = part;
    if (kind === "tool_call") calls.set(callId, { incoming: { tool: toolName, input: inputOf(part) }, message: key });
  }
  return parts;
}

function refreshMessage(state: State, message: AdmittedMessage, place: MessagePlace): void {
  const { source } = place;
  if (message.source === source) return;
  if (message.source === undefined) readParts(state, place);
  message.source = source;
  message.sent = applyTexts(message, source, state.lens);
}

async function restoreOriginals(state: State, sent: readonly object[]): Promise<boolean> {
  const { admitted, intake } = state;
  const isWhole = new Set<object | undefined>(sent);
  const isHere = (base: Base): boolean => {
    const place = admitted.get(findKey(state, base))?.sent;
    return place !== undefined && isWhole.has(place);
  };
  const newest = new Set<string>();
  const end = { index: state.followed.keys.length - 1, key: state.last };
  let isChanged = false;
  // If the same call was made several times, only its newest result is restored. Older results would repeat it.
  for (const message of [...admitted.values()].reverse()) {
    const { source } = message;
    if (source === undefined || message.sent === source || !isWhole.has(message.sent)) continue;
    const isSuperseded = message.calls.every((call) => newest.has(call));
    for (const call of message.calls) newest.add(call);
    if (isSuperseded || message.bases.every(isHere)) continue;
    message.isRestored = true;
    message.restoredIn = [...message.restoredIn, end];
    state.restored.add(message);
    message.sent = source;
    isChanged = true;
  }
  if (isChanged) state.followed.sources.length = 0;
  // New results must not refer to what is gone.
  await intake.forget(isHere);
  return isChanged;
}

function findKey({ places }: State, { sequence, isWritten }: Base): unknown {
  const place = places[sequence - 1];
  return isWritten ? place?.call : place?.result;
}

function applyTexts({ texts, isRestored }: AdmittedMessage, source: object, lens: MessageLens): object {
  if (texts.size === 0 || isRestored) return source;
  const edits = [...texts].map(([part, text]): [number, PartEdit] => [part, { action: "replace", text }]);
  return lens.edit(source, new Map(edits)) ?? source;
}

/** Returns the text of a result that is one text. Results with images or several texts are never shortened. A result
 *  that is a list of blocks also has an empty piece, which does not count. */
function readResultText({ kind, pieces }: CountedPart): string | undefined {
  const [piece, ...others] = pieces.filter((each) => !("text" in each) || each.text !== "");
  return kind === "tool_result" && others.length === 0 && piece !== undefined && "text" in piece
    ? piece.text
    : undefined;
}

/** Returns a store that keeps what the context holds in `contexts`, and originals in `store`. */
export function separateContexts(contexts: Store, store: Store): Pick<Store, "get" | "put" | "update"> {
  return {
    get: (name, key) => (name === contextCollection ? contexts : store).get(name, key),
    update: (name, key, change) => (name === contextCollection ? contexts : store).update(name, key, change),
    put: (name, key, value, options) => store.put(name, key, value, options),
  };
}
