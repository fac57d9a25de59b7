import { ContextError } from "../errors.ts";

/**
 * Durable strings, shared by every process that opens the same store. What a promise acknowledged survives a crash.
 * Calls take effect in the order in which they were made, awaited or not.
 * Values are any JavaScript strings. Names (collections, keys, streams) are 1 to 1,024 bytes of well-formed Unicode.
 */
export interface Store {
  get(collection: string, key: string): Promise<StoreRecord | undefined>;
  /** Writes and gives the new revision. With `expectedRevision`, only if the record still has it (0: does not exist). */
  put(collection: string, key: string, value: string, options?: RevisionOptions): Promise<number>;
  /**
   * Reads, changes and writes as one step that no other writer can come between. `change` must be quick, must not call
   * the store, and may run more than once. A value that it leaves as it was is not written again.
   */
  update(
    collection: string,
    key: string,
    change: (value: string | undefined) => string,
  ): Promise<StoreRecord>;
  /** Tells whether there was something to delete. */
  delete(collection: string, key: string, options?: RevisionOptions): Promise<boolean>;
  /** Records by code point order of their keys, the same in every driver. */
  list(collection: string, options?: ListOptions): Promise<StoreRecord[]>;
  /** Adds all values or none, without gaps, and gives the sequence of the stream's last entry (0: it has none). */
  append(stream: string, values: readonly string[]): Promise<number>;
  read(stream: string, options?: ReadOptions): Promise<StreamEntry[]>;
  /** Deletes all entries of a stream, and tells whether there were any. The next one that is added has the sequence 1. */
  deleteStream(stream: string): Promise<boolean>;
  /** Rewrites what is kept, so that no byte is left of what was deleted or replaced. Others wait meanwhile. */
  purge(): Promise<void>;
  /** Further calls reject; closing again does nothing. */
  close(): Promise<void>;
}

export interface StoreRecord {
  readonly key: string;
  readonly value: string;
  /** Grows with every write of the record, also over a delete: a revision never comes back. */
  readonly revision: number;
}

export interface StreamEntry {
  /** 1 for the stream's first entry. */
  readonly sequence: number;
  readonly value: string;
}

export interface RevisionOptions {
  expectedRevision?: number | undefined;
}

export interface ListOptions {
  prefix?: string | undefined;
  /** The last key of the page before this one. */
  after?: string | undefined;
  limit?: number | undefined;
}

export interface ReadOptions {
  /** The last sequence that the caller has. */
  after?: number | undefined;
  limit?: number | undefined;
}

/** Fits a PostgreSQL index row (2,704 bytes) twice over. */
const maxNameBytes = 1_024;
export const loneSurrogate: RegExp = /\p{Surrogate}/u;

export function checkNames(names: Readonly<Record<string, string>>): void {
  for (const [kind, name] of Object.entries(names)) {
    checkText(kind, name);
    const bytes = Buffer.byteLength(name);
    if (bytes === 0 || bytes > maxNameBytes) {
      throw invalid(`${kind} has ${bytes} bytes`, `Use 1 to ${maxNameBytes} bytes.`);
    }
  }
}

export function checkValues(values: readonly string[]): void {
  if (!Array.isArray(values))
    throw invalid(`values is of type ${typeof values}`, "Pass an array of strings.");
  for (const value of values) {
    if (typeof value !== "string") throw invalid(`a value is of type ${typeof value}`, "Store strings only.");
  }
}

export function checkRevisionOption({ expectedRevision }: RevisionOptions): void {
  checkWhole("expectedRevision", expectedRevision, 0);
}

export function checkListOptions({ prefix, after, limit }: ListOptions): void {
  if (prefix !== undefined) checkText("prefix", prefix);
  if (after !== undefined) checkText("after", after);
  checkWhole("limit", limit, 1);
}

export function checkReadOptions({ after, limit }: ReadOptions): void {
  checkWhole("after", after, 0);
  checkWhole("limit", limit, 1);
}

/** Rejects a write that was meant for another revision. A record that does not exist has revision 0. */
export function checkRevision(current: number, expected: number | undefined, name: string): void {
  if (expected === undefined || expected === current) return;
  throw new ContextError("store_conflict", `${name} is at revision ${current}, not ${expected}`, {
    hint: "Somebody else wrote it: read it again and repeat the change.",
  });
}

export function closedError(): ContextError {
  return new ContextError("store_unavailable", "the store is closed", { hint: "Open it again." });
}

function checkText(kind: string, text: string): void {
  if (typeof text !== "string") throw invalid(`${kind} is of type ${typeof text}`, "Pass a string.");
  if (loneSurrogate.test(text)) {
    throw invalid(`${kind} ${JSON.stringify(text)} has half a surrogate pair`, "Pass well-formed Unicode.");
  }
}

export function checkWhole(kind: string, value: number | undefined, least: number): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= least)) return;
  throw invalid(`${kind} is ${value}`, `Use a whole number from ${least}.`);
}

function invalid(message: string, hint: string): ContextError {
  return new ContextError("invalid_argument", message, { hint });
}
