import { Buffer } from "../bytes.ts";
import { ContextError, invalidArgument } from "../errors.ts";

/** A place for strings: records by key in collections, and entries in order in streams. Every process that opens the
 *  same store shares them. A write survives a crash once its promise has resolved. Calls take effect in the order in
 *  which they were made, awaited or not. A value can be any JavaScript string. The name of a collection, key or stream
 *  has 1 to 1,024 bytes of well-formed Unicode. */
export interface Store {
  /** Returns the record, or `undefined` if there is none. */
  get(collection: string, key: string): Promise<StoreRecord | undefined>;
  /** Writes the value and returns the new revision. */
  put(collection: string, key: string, value: string, options?: RevisionOptions): Promise<number>;
  /** Reads, changes and writes the record as one step: no other writer comes in between. `change` must be quick, must
   *  not call the store, and may run more than once. If it returns the value unchanged, nothing is written. */
  update(collection: string, key: string, change: (value: string | undefined) => string): Promise<StoreRecord>;
  /** Deletes the record and returns whether it existed. */
  delete(collection: string, key: string, options?: RevisionOptions): Promise<boolean>;
  /** Returns records sorted by the code points of their keys, in the same order for every kind of store. */
  list(collection: string, options?: ListOptions): Promise<StoreRecord[]>;
  /** Adds all values or none, without gaps. Returns the sequence of the stream's last entry, or 0 if it is empty. */
  append(stream: string, values: readonly string[]): Promise<number>;
  /** Returns entries of a stream, oldest first. */
  read(stream: string, options?: ReadOptions): Promise<StreamEntry[]>;
  /** Deletes the entries up to this sequence and returns how many there were. Later entries keep their sequences, and
   *  the next entry has the same sequence as without the call. */
  trimStream(stream: string, through: number): Promise<number>;
  /** Deletes a stream with all its entries and returns whether it existed. The next entry has the sequence 1. */
  deleteStream(stream: string): Promise<boolean>;
  /** Rewrites the store, so that no byte of deleted or replaced values is left. Other calls wait until it is done. */
  purge(): Promise<void>;
  /** Closes the store. Later calls reject, and a second close does nothing. */
  close(): Promise<void>;
}

/** A store with what its upkeep needs: what there is, since when, and copying it as it is. */
export interface MaintainedStore extends Store {
  /** Returns every collection, sorted by name. Bytes are those of the values, and times are milliseconds since 1970. */
  listCollections(): Promise<
    ({ readonly collection: string } & Readonly<Record<"records" | "bytes" | "oldest" | "newest", number>>)[]
  >;
  /** Returns the records of a collection without their values, sorted as `list` sorts them. `written` is when one was
   *  last written, in milliseconds since 1970. */
  listFacts(
    collection: string,
    options?: ListOptions,
  ): Promise<({ readonly key: string } & Readonly<Record<"revision" | "bytes" | "written", number>>)[]>;
  /** Returns streams, sorted by the code points of their names. */
  listStreams(options?: ListOptions): Promise<
    {
      readonly stream: string;
      readonly entries: number;
      readonly bytes: number;
      /** The sequence of the last entry, also if it was deleted. */
      readonly last: number;
      readonly written: number;
    }[]
  >;
  /** Returns how many bytes the store takes on its disk, or in memory. */
  size(): Promise<number>;
  /** Writes records with the times of the store that they come from. */
  copyRecords(
    collection: string,
    records: readonly { readonly key: string; readonly value: string; readonly written: number }[],
  ): Promise<void>;
  /** Writes a stream, or more of it, with the sequences and the time of the store that it comes from. */
  copyStream(stream: {
    readonly stream: string;
    readonly last: number;
    readonly written: number;
    readonly entries: readonly StreamEntry[];
  }): Promise<void>;
}

/** One value of a collection. */
export interface StoreRecord {
  readonly key: string;
  readonly value: string;
  /** Grows with every write of the record, and keeps growing after a delete, so a revision is never used twice. */
  readonly revision: number;
}

/** One value of a stream. */
export interface StreamEntry {
  /** The entry's place in the stream, counted from 1. */
  readonly sequence: number;
  readonly value: string;
}

/** Options of a write that must not overwrite somebody else's change. */
export interface RevisionOptions {
  /** Writes only if the record still has this revision, and rejects with `store_conflict` otherwise. 0 means that the
   *  record must not exist. Without this option the write always happens. */
  readonly expectedRevision?: number | undefined;
}

/** Which records of a collection to list. */
export interface ListOptions {
  /** Lists only keys that start with this text. */
  readonly prefix?: string | undefined;
  /** Lists only keys after this one. Pass the last key of the previous page. */
  readonly after?: string | undefined;
  /** Lists at most this many records. Without a limit, all of them. */
  readonly limit?: number | undefined;
}

/** Which entries of a stream to read. */
export interface ReadOptions {
  /** Reads only entries after this sequence. Pass the last sequence that you already have.
   *  @default 0 */
  readonly after?: number | undefined;
  /** Reads at most this many entries. Without a limit, all of them. */
  readonly limit?: number | undefined;
}

/** What a kind of store brings. No method is called after `close`, and those of `Store` get checked arguments. */
export type StoreDriver = Omit<MaintainedStore, keyof Store> & {
  readonly [Name in keyof Store]: (...given: Required<Parameters<Store[Name]>>) => ReturnType<Store[Name]>;
};

/** Makes a store of a driver: checks the arguments of every call, and rejects calls after the close. */
export function createStore(driver: StoreDriver): MaintainedStore {
  let closing: Promise<void> | undefined;
  const check = (names: Readonly<Record<string, string>>): void => {
    if (closing !== undefined) {
      throw new ContextError("store_unavailable", "the store is closed", { hint: "Open it again." });
    }
    checkNames(names);
  };
  const guarded = Object.entries(driver).map(([name, method]) => [
    name,
    async (...given: readonly unknown[]) => {
      check({});
      return (method as (...given: readonly unknown[]) => unknown)(...given);
    },
  ]);
  return {
    ...(Object.fromEntries(guarded) as Omit<StoreDriver, keyof Store> & Pick<Store, "purge">),
    async get(collection, key) {
      check({ collection, key });
      return driver.get(collection, key);
    },
    async put(collection, key, value, options = {}) {
      check({ collection, key });
      checkValues([value]);
      checkWhole("expectedRevision", options.expectedRevision, 0);
      return driver.put(collection, key, value, options);
    },
    async update(collection, key, change) {
      check({ collection, key });
      return driver.update(collection, key, (current) => {
        const value = change(current);
        checkValues([value]);
        return value;
      });
    },
    async delete(collection, key, options = {}) {
      check({ collection, key });
      checkWhole("expectedRevision", options.expectedRevision, 0);
      return driver.delete(collection, key, options);
    },
    async list(collection, options = {}) {
      check({ collection });
      const { prefix = "", after = "", limit } = options;
      checkText("prefix", prefix);
      checkText("after", after);
      checkWhole("limit", limit, 1);
      return driver.list(collection, options);
    },
    ...checkStreams(driver, check),
    close() {
      closing ??= driver.close();
      return closing;
    },
  };
}

function checkStreams(
  driver: StoreDriver,
  check: (names: Readonly<Record<string, string>>) => void,
): Pick<Store, "append" | "read" | "trimStream" | "deleteStream"> {
  return {
    async append(stream, values) {
      check({ stream });
      checkValues(values);
      return driver.append(stream, values);
    },
    async read(stream, options = {}) {
      check({ stream });
      checkWhole("after", options.after, 0);
      checkWhole("limit", options.limit, 1);
      return driver.read(stream, options);
    },
    async trimStream(stream, through) {
      check({ stream });
      if (through === undefined) throw invalidArgument("through is missing", "Pass the sequence of an entry.");
      checkWhole("through", through, 0);
      return driver.trimStream(stream, through);
    },
    async deleteStream(stream) {
      check({ stream });
      return driver.deleteStream(stream);
    },
  };
}

/** Fits twice into a PostgreSQL index row (2,704 bytes), beside a namespace. */
const maxNameBytes = 1_024;
const loneSurrogate = /\p{Surrogate}/u;

/** Encodes text as UTF-8. UTF-8 cannot express a lone surrogate, so such a text becomes 0xff, which never starts UTF-8,
 *  followed by UTF-16. */
export function encode(text: string): Buffer {
  if (!loneSurrogate.test(text)) return Buffer.from(text);
  return Buffer.concat([Buffer.of(0xff), Buffer.from(text, "utf16le")]);
}

export function decode(buffer: Buffer): string {
  return buffer[0] === 0xff ? buffer.toString("utf16le", 1) : buffer.toString();
}

/** Returns the bytes of a range of names: after which one, from which one, and before which one. UTF-8 never contains
 *  0xff, so that is after all names with the prefix. */
export function encodeRange({ prefix = "", after = "" }: ListOptions): [after: Buffer, first: Buffer, end: Buffer] {
  const first = encode(prefix);
  return [encode(after), first, Buffer.concat([first, Buffer.of(0xff)])];
}

export function checkNames(names: Readonly<Record<string, string>>): void {
  for (const [kind, name] of Object.entries(names)) {
    checkText(kind, name);
    const bytes = Buffer.byteLength(name);
    if (bytes === 0 || bytes > maxNameBytes) {
      throw invalidArgument(`${kind} has ${bytes} bytes`, `Use 1 to ${maxNameBytes} bytes.`);
    }
  }
}

function checkValues(values: readonly string[]): void {
  if (!Array.isArray(values)) throw invalidArgument(`values is of type ${typeof values}`, "Pass an array of strings.");
  for (const value of values) {
    if (typeof value !== "string") throw invalidArgument(`a value is of type ${typeof value}`, "Store strings only.");
  }
}

/** Throws if the record does not have the expected revision. A record that does not exist has revision 0. */
export function checkRevision(current: number, expected: number | undefined, name: string): void {
  if (expected === undefined || expected === current) return;
  throw new ContextError("store_conflict", `${name} is at revision ${current}, not ${expected}`, {
    hint: "Somebody else wrote it: read it again and repeat the change.",
  });
}

/** Returns a place for messages: an address without its password. */
export function shownAddress(address: string): string {
  return address
    .replace(/^(\w+:\/\/[^:/?#@]*):[^?#]*@/, "$1@")
    .replace(/([?&])(?:password|sslpassword)=[^&#]*&?/g, "$1")
    .replace(/[?&]$/, "");
}

function checkText(kind: string, text: string): void {
  if (typeof text !== "string") throw invalidArgument(`${kind} is of type ${typeof text}`, "Pass a string.");
  if (loneSurrogate.test(text)) {
    throw invalidArgument(`${kind} ${JSON.stringify(text)} has half a surrogate pair`, "Pass well-formed Unicode.");
  }
}

export function checkWhole(kind: string, value: number | undefined, least: number): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= least)) return;
  throw invalidArgument(`${kind} is ${value}`, `Use a whole number from ${least}.`);
}
