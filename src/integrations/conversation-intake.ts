/** The intake of one conversation of a wrapped client. A request has the whole history, often in new objects, so messages
 *  are recognised by their content and by what comes before them. Whatever fails, the history is sent as it is. */
import { createHash } from "node:crypto";
import {
  createIntake,
  createMessageIntake,
  heldCollection,
  type IntakeOptions,
  type MessageIntake,
  readOriginal,
  type SavedAdmissions,
  withHeldIn,
} from "../intake/index.ts";
import { createMessageLens, type FormatName, hashMessage } from "../messages/index.ts";
import { createMemoryStore, type Store } from "../store/index.ts";
import type { Fields } from "../text/index.ts";
import { type Counter, createCounter } from "../tokens/index.ts";

/** How results are shortened before they are first sent. */
export type IntakeSettings = Pick<
  IntakeOptions,
  "maxResultTokens" | "pageTokens" | "deltas" | "deltaWindow" | "recallHint"
>;

export interface ConversationIntake {
  /** Returns the messages with shortened results. */
  admit(messages: readonly object[], tools: readonly object[]): Promise<readonly object[]>;
  /** Takes the messages that a trim has left. Returns whether results got their originals back. */
  restore(sent: readonly object[]): Promise<boolean>;
  /** Stores what a later process needs to send the same texts. */
  save(): Promise<void>;
}

export interface ConversationIntakeOptions {
  readonly sessionId: string;
  readonly settings: IntakeSettings;
  readonly format: FormatName;
  readonly model: string | undefined;
  readonly counter: Counter | undefined;
  readonly store: Store | undefined;
}

/** `forgetHistory` deletes from this collection. */
const collection = "history/intake";

export async function openConversationIntake(options: ConversationIntakeOptions): Promise<ConversationIntake> {
  const { sessionId, settings, format, model, store } = options;
  const counter = options.counter ?? (await createCounter("auto", { model }));
  const saved = await readSaved(store, sessionId);
  const contexts = createMemoryStore();
  for (const [key, value] of Object.entries(saved?.contexts ?? {})) await contexts.put(heldCollection, key, value);
  let hasRecall = false;
  let stored = "";
  const recallHint = (id: string): string => (hasRecall ? `recall with id ${id}` : "make the same call again");
  const intake = await createIntake({
    ...{ recallHint, ...settings, counter, sessionId },
    // One record has what the context holds and the decisions, so that the two never disagree.
    store: withHeldIn(contexts, store ?? createMemoryStore()),
  });
  const lens = createMessageLens([], { counter, format });
  const messages: MessageIntake = createMessageIntake(lens, intake, { keysOf: chainsOf, saved: saved?.admissions });
  return {
    async admit(history, tools) {
      hasRecall ||= tools.some(isRecallTool);
      return messages.admit(history).catch(() => history);
    },
    restore: (sent) => messages.restore(sent).catch(() => false),
    async save() {
      if (store === undefined) return;
      const records = await contexts.list(heldCollection);
      const own = Object.fromEntries(records.map(({ key, value }) => [key, value]));
      const state = JSON.stringify({ contexts: own, admissions: messages.save() } satisfies SavedState);
      if (state === stored) return;
      stored = state;
      await store.put(collection, sessionId, state).catch(() => undefined);
    },
  };
}

interface SavedState {
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

/** Names each message by its content and by all messages before it. */
function chainsOf(messages: readonly object[]): readonly string[] {
  let chain = "";
  return messages.map((message) => {
    chain = createHash("sha256")
      .update(`${chain} ${hashMessage(message)}`)
      .digest("base64url")
      .slice(0, 16);
    return chain;
  });
}

/** Tools are named at the top, or in `function` in OpenAI's chat. */
function isRecallTool(tool: object): boolean {
  const { name, function: inner } = tool as Fields;
  return (name ?? (Object(inner) as Fields).name) === "recall";
}

/** Returns what an intake shortened or a session stored, for the recall tool of a session. */
export async function recallOriginal(source: unknown, id: string): Promise<string | undefined> {
  const { store, sessionId } = Object(source) as { readonly store?: Store; readonly sessionId?: string };
  if (store === undefined) return undefined;
  const original = await readOriginal(store, id);
  if (original !== undefined && original.sessionId === sessionId) return original.text;
  const { findStoredResult } = await import("../session/index.ts");
  return (await findStoredResult(store, id, sessionId))?.text;
}
