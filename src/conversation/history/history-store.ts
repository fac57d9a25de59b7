/** What the store keeps of a session: its checkpoint, the originals of trimmed content, and the times of its calls. */

import { Buffer } from "../../core/bytes.ts";
import { ContextError } from "../../core/errors.ts";
import type { CountedPart } from "../../core/messages/index.ts";
import type { MaintainedStore, Store } from "../../core/store/index.ts";
import { isFields, isOriginalId, isText, isWhole, objectOf, readJson } from "../../core/text/index.ts";
import type { CalibratorSnapshot } from "../../core/tokens/index.ts";
import { readText } from "./apply-decisions.ts";
import { type Checkpoint, checkCheckpoint } from "./checkpoint.ts";
import type { DecisionLog, LoggedDecision } from "./decision-log.ts";
import type { TrackedMessage } from "./tracked-history.ts";

/** Trimmed content that `recall` returned. */
export interface Recalled {
  /** The id that was asked for. */
  readonly id: string;
  /** What kind of content it was. */
  readonly kind: CountedPart["kind"];
  /** The tool that was called, for a call or a result. */
  readonly toolName?: string | undefined;
  /** All text of the content that can be read. */
  readonly text: string;
  /** The content as it was in the caller's message. */
  readonly value: unknown;
}

/** Keeps the state of one session, in the store if there is one. */
export interface HistoryStore {
  /** Returns the checkpoint to resume from: the given one, or the store's. */
  load(given: Checkpoint | undefined): Promise<Checkpoint | undefined>;
  /** Saves a checkpoint, and the originals of what was trimmed since the last one. Rejects if the store has decisions
   *  that the checkpoint lacks: another trimmer of the session has made them, and requests must follow both. */
  save(checkpoint: Checkpoint, messages: readonly TrackedMessage[]): Promise<void>;
  /** Stores what was learnt from usage, without the decisions. Nobody waits for it, and a failure loses only this. */
  keepCalibration(calibrator: CalibratorSnapshot | undefined, epochs: number): void;
  /** Returns trimmed content, from the messages or from the store. `entry` is absent if the ledger does not know the
   *  id. */
  recall(
    id: string,
    entry: LoggedDecision | undefined,
    messages: readonly TrackedMessage[],
  ): Promise<Recalled | undefined>;
  /** Returns all trimmed content that is in the messages or in the store, oldest first. */
  list(entries: readonly LoggedDecision[], messages: readonly TrackedMessage[]): Promise<readonly Recalled[]>;
}

export function createHistoryStore(store: Store | undefined, sessionId: string): HistoryStore {
  let savedEpochs = 0;
  /** The stored checkpoint that the caller's own one replaces. */
  let replaced: string | undefined;
  return {
    async load(given) {
      const found = given ?? (store && (await loadCheckpoint(store, sessionId)));
      const checkpoint = found && checkCheckpoint(found);
      const isOlder = checkpoint !== undefined && checkpoint.ledger.key === undefined;
      if (given !== undefined || isOlder) replaced = (await store?.get(checkpointCollection, sessionId))?.value;
      savedEpochs = checkpoint?.ledger.epochs.length ?? 0;
      return given === undefined && store !== undefined ? withCalibration(store, sessionId, checkpoint) : checkpoint;
    },
    keepCalibration(calibrator, epochs) {
      if (store === undefined || calibrator === undefined) return;
      const record = { epochs, calibrator };
      // A closed store may throw at once.
      const write = async (): Promise<unknown> => store.put(calibrationCollection, sessionId, JSON.stringify(record));
      write().catch(() => undefined);
    },
    async save(checkpoint, messages) {
      if (store === undefined) return;
      const { epochs } = checkpoint.ledger;
      savedEpochs = await saveOriginals(store, { sessionId, messages, epochs, savedEpochs });
      const text = JSON.stringify(checkpoint);
      await store.update(checkpointCollection, sessionId, (stored) => {
        if (stored === replaced || !isSuperseded(checkpoint, stored)) return text;
        throw new ContextError(
          "store_conflict",
          `another trimmer of session ${sessionId} has trimmed the history since`,
          {
            hint: "Create the trimmer again, which takes over the stored decisions, and reduce again before you send.",
          },
        );
      });
      replaced = undefined;
    },
    async recall(id, entry, messages) {
      const recalled = entry && recallFrom(messages, entry);
      return recalled ?? (store && (await recallFromStore(store, sessionId, id)));
    },
    async list(entries, messages) {
      const stored = store === undefined ? [] : await listStored(store, sessionId);
      const held = entries.flatMap((entry): Stored[] => {
        const found = recallFrom(messages, entry);
        return found === undefined ? [] : [{ ...found, chain: entry.chain }];
      });
      // The store has its records in the order of their ids. What is not stored is newer.
      const known = new Set(stored.map(({ id }) => id));
      return firstOfEach([...stored, ...held.filter(({ id }) => !known.has(id))]).map(
        ({ chain: _chain, ...recalled }) => recalled,
      );
    },
  };
}

/** The checkpoints, by session id. */
const checkpointCollection = "history/checkpoints";

async function loadCheckpoint(store: Store, sessionId: string): Promise<Checkpoint | undefined> {
  const record = await store.get(checkpointCollection, sessionId);
  try {
    return record === undefined ? undefined : checkCheckpoint(JSON.parse(record.value));
  } catch (cause) {
    throw new ContextError("store_corrupt", `the checkpoint of session ${sessionId} cannot be read`, {
      hint: `Delete it with plimsoll session rm ${sessionId}. The history is then trimmed again.`,
      cause,
    });
  }
}

/** What was learnt from usage, by session id. Checkpoints are large and written when a history is trimmed. This is written
 *  after each answer. */
const calibrationCollection = "history/calibration";

/** `epochs` is the number of epochs at that time. */
const isKeptCalibration = objectOf({ epochs: isWhole, calibrator: isFields });

/** Adds what was learnt after the checkpoint was written. The calibrator ignores what is damaged. */
async function withCalibration(
  store: Store,
  sessionId: string,
  checkpoint: Checkpoint | undefined,
): Promise<Checkpoint | undefined> {
  const kept = readJson((await store.get(calibrationCollection, sessionId))?.value, isKeptCalibration);
  const epochs = checkpoint?.ledger.epochs.length ?? 0;
  if (kept === undefined || kept.epochs < epochs) return checkpoint;
  const calibrator = kept.calibrator as unknown as CalibratorSnapshot;
  return { ...(checkpoint ?? { version: 2, policy: "economic", ledger: { epochs: [] } }), calibrator };
}

/** Whether the stored checkpoint has decisions that this one lacks. One that cannot be read is replaced. */
function isSuperseded({ ledger }: Checkpoint, stored: string | undefined): boolean {
  const epochs = readJson(stored, isStoredCheckpoint)?.ledger.epochs ?? [];
  return JSON.stringify(epochs) !== JSON.stringify(ledger.epochs.slice(0, epochs.length));
}

const isStoredCheckpoint = objectOf({
  ledger: objectOf({ epochs: (value: unknown): value is readonly unknown[] => Array.isArray(value) }),
});

/** What a process last saw of a stored checkpoint. */
export interface SeenCheckpoint {
  readonly revision: number;
  /** Whether it has decisions that the process does not have. */
  readonly isNew: boolean;
}

/** Looks whether another process has stored decisions of the session. `own` is the last checkpoint of this process. */
export async function lookForDecisions(
  store: Store,
  sessionId: string,
  { revision, own }: { readonly revision: number; readonly own: Checkpoint | undefined },
): Promise<SeenCheckpoint> {
  const record = await store.get(checkpointCollection, sessionId);
  if (record === undefined || record.revision === revision) return { revision: record?.revision ?? 0, isNew: false };
  const known = own ?? { ledger: { epochs: [] } };
  return { revision: record.revision, isNew: isSuperseded(known as Checkpoint, record.value) };
}

/** Returns the original of a trimmed part, if the messages still have it. */
export function recallFrom(messages: readonly TrackedMessage[], entry: LoggedDecision): Recalled | undefined {
  const message = messages[entry.message];
  const part = message?.chain === entry.chain ? message.original.parts[entry.part] : undefined;
  if (part === undefined) return undefined;
  const { kind, toolName, value } = part;
  return { id: entry.id, kind, ...(toolName !== undefined && { toolName }), text: readText(part), value };
}

function recallCollection(sessionId: string): string {
  return `history/recall/${sessionId}`;
}

/** A stored original, with the hash of its ledger entry. A run that was killed may leave originals whose ids are used
 *  again later. */
type Stored = Recalled & { readonly chain: string };

/** Believes a record only if the checkpoint has its id and the hash of its history. */
async function recallFromStore(store: Store, sessionId: string, id: string): Promise<Recalled | undefined> {
  // Models invent ids.
  if (!isOriginalId(id)) return undefined;
  const record = await store.get(checkpointCollection, sessionId);
  // Looking for the text is much faster than reading the JSON of a conversation that does not have it.
  if (record === undefined || !record.value.includes(id)) return undefined;
  const { epochs } = (await loadCheckpoint(store, sessionId))?.ledger ?? { epochs: [] };
  const epoch = epochs.findIndex(({ entries }) => entries.some((entry) => entry.id === id));
  const entry = epochs[epoch]?.entries.find((each) => each.id === id);
  if (entry === undefined) return undefined;
  let isDamaged = false;
  for await (const stored of storedOriginals(store, sessionId, isOlderId(id) ? "" : epochPrefix(epoch))) {
    isDamaged ||= stored === undefined;
    const found = stored?.find((each) => each.id === id && (isOlderId(id) || each.chain === entry.chain));
    if (found !== undefined) return withoutChain(found);
  }
  if (!isDamaged) return undefined;
  throw new ContextError(
    "store_corrupt",
    `the content that was trimmed as ${id} cannot be read: its record is damaged`,
    {
      hint: "Run its tool again, or read it in the conversation.",
    },
  );
}

/** Yields the lists of originals whose keys start with a prefix; undefined for one that cannot be read. */
async function* storedOriginals(
  store: Store,
  sessionId: string,
  prefix: string,
): AsyncGenerator<readonly Stored[] | undefined> {
  for (let after: string | undefined; ; ) {
    const [record] = await store.list(recallCollection(sessionId), { prefix, after, limit: 1 });
    if (record === undefined) return;
    yield readJson(record.value, isStoredList);
    after = record.key;
  }
}

/** Earlier versions gave other keys to their records, and their histories other hashes. */
function isOlderId(id: string): boolean {
  return id.length < 16;
}

function epochPrefix(epoch: number): string {
  return `e${String(epoch).padStart(8, "0")}-`;
}

/** Returns trimmed content of a conversation by its id; without `sessionId` of any conversation. */
export async function findTrimmed(store: Store, id: string, sessionId?: string): Promise<Recalled | undefined> {
  for (const each of sessionId === undefined ? await listHistories(store) : [sessionId]) {
    const found = await recallFromStore(store, each, id);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Leaves out records that cannot be read: a list without them is still of use. */
async function listStored(store: Store, sessionId: string): Promise<Stored[]> {
  const records = await store.list(recallCollection(sessionId));
  const stored = records.flatMap(({ value }) => readJson(value, isStoredList) ?? []);
  return stored.map((each) => ({ ...withoutChain(each), chain: each.chain }));
}

/** A part may first become a placeholder and later be removed. The placeholder shows its first id. */
function firstOfEach(sorted: readonly Stored[]): Stored[] {
  const seen = new Map<string, Set<string>>();
  return sorted.filter(({ chain, text }) => {
    const texts = seen.get(chain) ?? new Set<string>();
    seen.set(chain, texts);
    return !texts.has(text) && texts.add(text);
  });
}

const isStored = objectOf({ id: isText, chain: isText, kind: isText, text: isText }, { toolName: isText });

const isStoredList = (value: unknown): value is readonly Stored[] =>
  Array.isArray(value) && value.every((each) => isStored(each) && isFields(each));

/** Saves the originals of what was trimmed since the last call. Returns the number of epochs that are now saved. */
async function saveOriginals(
  store: Store,
  {
    sessionId,
    messages,
    epochs,
    savedEpochs,
  }: {
    readonly sessionId: string;
    readonly messages: readonly TrackedMessage[];
    readonly epochs: DecisionLog["epochs"];
    readonly savedEpochs: number;
  },
): Promise<number> {
  // Collect everything before the first write: the history may change during a write.
  const records = epochs
    .slice(savedEpochs)
    .flatMap(({ entries }, index) => createRecords(entries, { epoch: savedEpochs + index, messages }));
  for (const { key, value } of records) await store.put(recallCollection(sessionId), key, value);
  return epochs.length;
}

/** Puts the originals of one epoch into a few records, in order. */
function createRecords(
  entries: readonly LoggedDecision[],
  { epoch, messages }: { readonly epoch: number; readonly messages: readonly TrackedMessage[] },
): { readonly key: string; readonly value: string }[] {
  // A short write costs about as much as a long one, and an epoch may have thousands of parts. But recalling one part
  // should not read all the others.
  const maxRecordLength = 500_000;
  const records: { key: string; value: string }[] = [];
  let texts: string[] = [];
  let length = 0;
  for (const [index, entry] of entries.entries()) {
    const recalled = recallFrom(messages, entry);
    const text = recalled && JSON.stringify(tagBytes({ ...recalled, chain: entry.chain }));
    if (text !== undefined) texts.push(text);
    length += text?.length ?? 0;
    const isFull = length >= maxRecordLength || index === entries.length - 1;
    if (!isFull || texts.length === 0) continue;
    // With the hash, records that a killed run left are never overwritten by other ones.
    const key = `${epochPrefix(epoch)}${String(records.length).padStart(4, "0")}-${entry.chain}`;
    records.push({ key, value: `[${texts.join(",")}]` });
    texts = [];
    length = 0;
  }
  return records;
}

function withoutChain({ chain: _chain, ...recalled }: Stored): Recalled {
  return restoreBytes(recalled) as Recalled;
}

/** Marks bytes in JSON. The AI SDK has images and files as bytes, which JSON would write with one field per byte. */
const tag = "plimsoll:bytes";

/** Replaces bytes with tagged base64. Returns the same value if there are none. */
function tagBytes(value: unknown): unknown {
  if (ArrayBuffer.isView(value)) {
    return { [tag]: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64") };
  }
  if (value instanceof ArrayBuffer) return { [tag]: Buffer.from(value).toString("base64") };
  return mapFields(value, tagBytes);
}

/** Replaces tagged base64 with a Uint8Array, whatever type held the bytes before. */
function restoreBytes(value: unknown): unknown {
  const base64 = Object(value)[tag] as unknown;
  return typeof base64 === "string" ? new Uint8Array(Buffer.from(base64, "base64")) : mapFields(value, restoreBytes);
}

function mapFields(value: unknown, map: (field: unknown) => unknown): unknown {
  if (Array.isArray(value)) {
    const mapped = value.map(map);
    return mapped.every((each, index) => each === value[index]) ? value : mapped;
  }
  // A value with its own prototype, such as a URL, has its own JSON form.
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  const changes = Object.entries(value).flatMap(([name, field]) => {
    const mapped = map(field);
    return mapped === field ? [] : [[name, mapped] as const];
  });
  return changes.length === 0 ? value : { ...value, ...Object.fromEntries(changes) };
}

/** Collections whose keys are session ids. Integrations keep the last four. */
const collections = [
  checkpointCollection,
  calibrationCollection,
  "history/calls",
  "history/learned",
  "history/lifetimes",
  "history/intake",
];

/**
 * Returns the ids of the sessions that have a checkpoint or call times in the store; with `prefix` only those that start
 * with it.
 *
 * @example
 * ```ts
 * import { listHistories } from "plimsoll/history";
 * import { openSqliteStore } from "plimsoll/store/sqlite";
 *
 * const store = await openSqliteStore({ path: "sessions.db" });
 * console.log(await listHistories(store));
 * ```
 */
export async function listHistories(store: Store, { prefix }: { readonly prefix?: string } = {}): Promise<string[]> {
  const found = await Promise.all(collections.map((collection) => store.list(collection, { prefix })));
  return [...new Set(found.flat().map(({ key }) => key))];
}

/** Returns when each conversation of a trimmer was last used, in milliseconds since 1970, also of those that a killed
 *  process left without a checkpoint. */
export async function listHistoryUses(store: MaintainedStore): Promise<Map<string, number>> {
  const uses = new Map<string, number>();
  const note = (id: string, written: number): void => void uses.set(id, Math.max(written, uses.get(id) ?? 0));
  for (const collection of collections) {
    for (const { key, written } of await store.listFacts(collection)) note(key, written);
  }
  const originals = recallCollection("");
  for (const { collection, newest } of await store.listCollections()) {
    if (collection.startsWith(originals)) note(collection.slice(originals.length), newest);
  }
  return uses;
}

/**
 * Deletes everything that the store keeps about a session's history: its checkpoint, the originals of trimmed content
 * and the times of its calls. The database file shrinks only after the store is purged.
 *
 * @example
 * ```ts
 * import { forgetHistory } from "plimsoll/history";
 * import { openSqliteStore } from "plimsoll/store/sqlite";
 *
 * const store = await openSqliteStore({ path: "sessions.db" });
 * await forgetHistory(store, "build-42");
 * ```
 */
export async function forgetHistory(store: Store, sessionId: string): Promise<void> {
  for (const collection of collections) await store.delete(collection, sessionId);
  const originals = recallCollection(sessionId);
  for (;;) {
    const records = await store.list(originals, { limit: 20 });
    if (records.length === 0) return;
    for (const { key } of records) await store.delete(originals, key);
  }
}
