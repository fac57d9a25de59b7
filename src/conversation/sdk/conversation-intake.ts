/** The intake of one conversation of a wrapped client. A request has the whole history, often in new objects, so messages
 *  are recognised by their content and by what comes before them. Whatever fails, the history is sent as it is. */

import {
  createMessageLens,
  type FormatName,
  hashMessage,
  type MessageLens,
  takeSnapshot,
} from "../../core/messages/index.ts";
import { createMemoryStore, type Store } from "../../core/store/index.ts";
import { createHashKey, createKeyedHash, type KeyedHash } from "../../core/text/index.ts";
import { type Counter, createCounter } from "../../core/tokens/index.ts";
import { hasRecallTool, olderNames } from "../history/index.ts";
import {
  contextCollection,
  createIntake,
  createMessageIntake,
  type IntakeOptions,
  type MessageIntake,
  type SavedAdmissions,
  separateContexts,
} from "../intake/index.ts";

/** How results are shortened before they are first sent. */
export type IntakeSettings = Pick<
  IntakeOptions,
  "maxResultTokens" | "pageTokens" | "deltas" | "deltaWindow" | "recallHint"
>;

export interface ConversationIntake {
  /** Returns the messages with shortened results. */
  admit(messages: readonly object[], tools: readonly object[]): Promise<readonly object[]>;
  /** Returns the lengths of the earlier requests of this history that have more than `seen` messages. */
  findRequests(messages: readonly object[], seen: number): readonly number[];
  /** Takes the messages that a trim has left. Returns whether results got their originals back. */
  restore(sent: readonly object[]): Promise<boolean>;
  /** Stores what a later process needs to send the same texts. */
  save(): Promise<void>;
  /** Returns a copy that changes neither this one nor the store. */
  fork(): Promise<ConversationIntake>;
}

export interface ConversationIntakeOptions {
  readonly sessionId: string;
  readonly settings: IntakeSettings;
  readonly format: FormatName;
  readonly model: string | undefined;
  readonly counter: Counter | undefined;
  readonly store: Store | undefined;
  /** What notes and ids are derived from if calls have no ids. */
  readonly markSeed: string;
}

/** `forgetHistory` deletes from this collection. */
const collection = "history/intake";

export async function openConversationIntake(options: ConversationIntakeOptions): Promise<ConversationIntake> {
  return openWith(options, await readSaved(options.store, options.sessionId));
}

async function openWith(
  options: ConversationIntakeOptions,
  saved: SavedState | undefined,
): Promise<ConversationIntake> {
  const { sessionId, settings, format, model, store, markSeed } = options;
  const originals = store ?? createMemoryStore();
  const counter = options.counter ?? (await createCounter("auto", { model }));
  const { key = createHashKey() } = saved ?? {};
  const contexts = createMemoryStore();
  for (const [key, value] of Object.entries(saved?.contexts ?? {})) await contexts.put(contextCollection, key, value);
  let hasRecall = false;
  let stored = "";
  const recallHint = (id: string): string => (hasRecall ? `recall with id ${id}` : "make the same call again");
  const intake = await createIntake({
    recallHint,
    ...settings,
    counter,
    sessionId,
    markSeed,
    // One record has what the context holds and the decisions, so that the two never disagree.
    store: separateContexts(contexts, originals),
  });
  const lens = createMessageLens([], { counter, format });
  const keysOf = createChains(createKeyedHash(key));
  const open = (admissions: SavedAdmissions | undefined): MessageIntake =>
    createMessageIntake(lens, intake, { keysOf, saved: admissions });
  const isOlder = saved !== undefined && saved.key === undefined;
  let messages = isOlder ? undefined : open(saved?.admissions);
  const currentState = async (): Promise<SavedState | undefined> => {
    if (messages === undefined) return undefined;
    const records = await contexts.list(contextCollection);
    const own = Object.fromEntries(records.map(({ key, value }) => [key, value]));
    return { key, contexts: own, admissions: messages.save() };
  };
  return {
    async admit(history, tools) {
      hasRecall ||= hasRecallTool(tools);
      messages ??= open(saved && renameOlder(saved.admissions, olderNames(history), keysOf(history)));
      return messages.admit(history).catch(() => history);
    },
    findRequests: (history, seen) => findRequests(lens, history, seen),
    restore: async (sent) => (await messages?.restore(sent).catch(() => false)) ?? false,
    async save() {
      const state = store && JSON.stringify(await currentState());
      if (store === undefined || state === undefined || state === stored) return;
      stored = state;
      await store.put(collection, sessionId, state).catch(() => undefined);
    },
    async fork() {
      const memory = createMemoryStore();
      const get: Store["get"] = async (...record) => (await memory.get(...record)) ?? originals.get(...record);
      return openWith({ ...options, counter, store: { ...memory, get } }, (await currentState()) ?? saved);
    },
  };
}

/** A request ends where an answer begins. */
function findRequests(lens: MessageLens, messages: readonly object[], seen: number): number[] {
  const lengths: number[] = [];
  let isAnswer = true;
  for (let index = seen; index < messages.length; index++) {
    const before = isAnswer;
    isAnswer = lens.role(messages[index] as object, index) === "assistant";
    if (isAnswer && !before) lengths.push(index);
  }
  return lengths;
}

interface SavedState {
  /** The key of the names of messages. Absent in the state of an earlier version. */
  readonly key?: string | undefined;
  readonly contexts: Readonly<Record<string, string>>;
  readonly admissions: SavedAdmissions;
}

async function readSaved(store: Store | undefined, sessionId: string): Promise<SavedState | undefined> {
  try {
    const record = await store?.get(collection, sessionId);
    return record === undefined ? undefined : (JSON.parse(record.value) as SavedState);
  } catch {
    return undefined;
  }
}

/** Returns a function that names each message by its content and by all messages before it. What did not change since the
 *  last call is not hashed again. */
function createChains(hash: KeyedHash): (messages: readonly object[]) => readonly string[] {
  const known: { readonly chain: string; readonly isUnchanged: (message: unknown) => boolean }[] = [];
  return (messages) => {
    const same = messages.findIndex((message, index) => known[index]?.isUnchanged(message) !== true);
    known.length = same < 0 ? messages.length : same;
    for (const message of messages.slice(known.length)) {
      const chain = hash.text((known.at(-1)?.chain ?? "") + hashMessage(message, hash));
      known.push({ chain, isUnchanged: takeSnapshot(message) });
    }
    return known.map(({ chain }) => chain);
  };
}

/** Returns what an earlier version saved, with the names of this one. */
function renameOlder(
  { messages, places, last }: SavedAdmissions,
  older: readonly unknown[],
  names: readonly unknown[],
): SavedAdmissions {
  const renamed = new Map(older.map((name, index) => [name, names[index]]));
  const rename = (name: unknown): unknown => renamed.get(name) ?? name;
  return {
    messages: messages.map(([key, message]) => [rename(key), message]),
    places: places.map(({ result, call }) => ({ result: rename(result), call: rename(call) })),
    last: rename(last),
  };
}
