/** Getting trimmed content back: from the history while it is at hand, from the store after a restart. */

import { ContextError } from "../errors.ts";
import type { CountedPart } from "../messages/index.ts";
import type { Store } from "../store/index.ts";
import { isFields, isText, objectOf, readJson } from "../text/index.ts";
import { textOf } from "./apply-decisions.ts";
import type { LedgerEntry, LedgerIndex } from "./ledger.ts";
import { restoreBytes, tagBytes } from "./tagged-bytes.ts";
import type { TrackedMessage } from "./tracked-history.ts";

export interface Recalled {
  readonly id: string;
  readonly kind: CountedPart["kind"];
  readonly toolName?: string | undefined;
  /** All that can be read of it. */
  readonly text: string;
  /** The part as the caller sent it. */
  readonly value: unknown;
}

export function recallFrom(messages: readonly TrackedMessage[], entry: LedgerEntry): Recalled | undefined {
  const message = messages[entry.message];
  const part = message?.chain === entry.chain ? message.original.parts[entry.part] : undefined;
  if (part === undefined) return undefined;
  const { kind, toolName, value } = part;
  return { id: entry.id, kind, ...(toolName !== undefined && { toolName }), text: textOf(part), value };
}

export function recallCollection(sessionId: string): string {
  return `history/recall/${sessionId}`;
}

/** One as it is stored: with the hash that its ledger entry has, since a run that was killed may leave originals behind whose ids are then
 *  given again. */
type Stored = Recalled & { readonly chain: string };

interface RecallOptions {
  readonly sessionId: string;
  readonly id: string;
  /** Absent: the ledger at hand does not know the id. */
  readonly chain?: string | undefined;
}

export async function recallFromStore(
  store: Store,
  { sessionId, id, chain }: RecallOptions,
): Promise<Recalled | undefined> {
  // Models make ids up.
  if (!/^r\d{1,15}$/.test(id)) return undefined;
  let after = numberOf(id);
  let isDamaged = false;
  for (let looks = 0; looks < maxLooks; looks++) {
    const [record] = await store.list(recallCollection(sessionId), { after, limit: 1 });
    if (record === undefined) break;
    const stored = readJson(record.value, isStoredList);
    isDamaged ||= stored === undefined;
    const found = stored?.find((each) => each.id === id && (chain ?? each.chain) === each.chain);
    if (found !== undefined) return withoutChain(found);
    after = record.key;
  }
  if (!isDamaged) return undefined;
  throw new ContextError("store_corrupt", `what was trimmed as ${id} cannot be read: its record is damaged`, {
    hint: "Run the tool again that gave it, or read it from the conversation.",
  });
}

const isShaped = objectOf({ id: isText, chain: isText, kind: isText, text: isText }, { toolName: isText });
const isStoredList = (value: unknown): value is readonly Stored[] =>
  Array.isArray(value) && value.every((each) => isShaped(each) && isFields(each));

// The first record is the right one, save for those that killed runs left behind.
const maxLooks = 16;

/** Keeps the originals of what was trimmed since the last time. Gives the number of epochs that are now safe. */
export async function saveOriginals(
  store: Store,
  { sessionId, messages, ledger, savedEpochs }: SaveOptions,
): Promise<number> {
  const { epochs } = ledger.ledger;
  const { length } = epochs;
  // All are collected before the first is written: the history goes on meanwhile.
  const records = epochs.slice(savedEpochs).flatMap(({ entries }) => recordsOf(entries, messages));
  for (const { key, value } of records) await store.put(recallCollection(sessionId), key, value);
  return length;
}

interface SaveOptions {
  readonly sessionId: string;
  readonly messages: readonly TrackedMessage[];
  readonly ledger: LedgerIndex;
  readonly savedEpochs: number;
}

interface StoredRecord {
  readonly key: string;
  readonly value: string;
}

// A write costs about the same whether it is short or long, and an epoch may have thousands of parts; yet one is recalled without the rest.
const maxRecordLength = 500_000;

/** Originals of one epoch in few records, each under the number of its last id. */
function recordsOf(entries: readonly LedgerEntry[], messages: readonly TrackedMessage[]): StoredRecord[] {
  const records: StoredRecord[] = [];
  let texts: string[] = [];
  let length = 0;
  for (const [index, entry] of entries.entries()) {
    const text = storedText(entry, messages);
    if (text !== undefined) texts.push(text);
    length += text?.length ?? 0;
    const isFull = length >= maxRecordLength || index === entries.length - 1;
    if (!isFull || texts.length === 0) continue;
    records.push({ key: `${numberOf(entry.id)}-${entry.chain}`, value: `[${texts.join(",")}]` });
    texts = [];
    length = 0;
  }
  return records;
}

function storedText(entry: LedgerEntry, messages: readonly TrackedMessage[]): string | undefined {
  const recalled = recallFrom(messages, entry);
  return recalled && JSON.stringify(tagBytes({ ...recalled, chain: entry.chain }));
}

/** So that the order of keys is that of ids. */
function numberOf(id: string): string {
  return id.slice(1).padStart(16, "0");
}

function withoutChain({ chain: _chain, ...recalled }: Stored): Recalled {
  return restoreBytes(recalled) as Recalled;
}
