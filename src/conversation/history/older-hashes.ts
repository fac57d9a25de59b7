/** Reads what earlier versions stored about histories. They recognised messages by a hash of 96 bits without a key, for
 *  which anybody can find two messages alike. It is computed once more, to give what was stored keyed hashes. */
import { Buffer } from "../../core/bytes.ts";
import { createHash } from "../../core/crypto.ts";
import { ContextError } from "../../core/errors.ts";
import { hashMessage, isMessageContent, isResultBlock } from "../../core/messages/index.ts";
import type { KeyedHash } from "../../core/text/index.ts";
import type { Anchor, DecisionLog, Epoch } from "./decision-log.ts";

/** Returns the log of an earlier version with the hashes of this one. Epochs of another history keep their old hashes,
 *  which match nothing. */
export function rekeyLog({ epochs }: DecisionLog, messages: readonly object[], hash: KeyedHash): readonly Epoch[] {
  const chains = new Map<string, string>();
  let [older, chain] = ["", ""];
  for (const [index, message] of messages.entries()) {
    older = hashOlder([older, hashOlder(message)]);
    chain = hash.text(chain + hashMessage(message, hash));
    chains.set(`${index} ${older}`, chain);
  }
  const rekey = <Value extends Anchor>(anchor: Value): Value => {
    const known = chains.get(`${anchor.message} ${anchor.chain}`);
    return known === undefined ? anchor : { ...anchor, chain: known };
  };
  return epochs.map((epoch) => ({
    ...epoch,
    at: rekey(epoch.at),
    reach: rekey(epoch.reach),
    entries: epoch.entries.map(rekey),
  }));
}

/** Returns the names that earlier versions gave to the messages of a wrapped client. */
export function olderNames(messages: readonly object[]): string[] {
  let chain = "";
  return messages.map((message) => {
    chain = createHash("sha256")
      .update(`${chain} ${hashOlder(message)}`)
      .digest("base64url")
      .slice(0, 16);
    return chain;
  });
}

function hashOlder(message: object): string {
  state[0] = 1;
  state[1] = 2;
  state[2] = 3;
  state[3] = 4;
  addValue(message, 0);
  return finish();
}

// The hash reads one stream of words that is different for different contents: each value starts with its kind, each
// string with its length.
const kinds = { text: 1, longText: 2, bytes: 3, scalar: 4, list: 5, fields: 6, end: 7 } as const;
const maxDepth = 500;

// Scratch space: hashing one message ends before the next one starts.
const state = new Int32Array(4);
const chunkChars = 16_384;
const bytes = Buffer.allocUnsafeSlow(2 * chunkChars);
const words = new Int32Array(bytes.buffer);
const outcome = Buffer.allocUnsafeSlow(12);
const outcomeWords = new Int32Array(outcome.buffer);

function addValue(value: unknown, depth: number): void {
  if (typeof value === "string") addText(value);
  else if (typeof value !== "object" || value === null) addScalar(value);
  else if (depth > maxDepth)
    throw new ContextError("invalid_message", `message is nested more than ${maxDepth} levels deep`);
  else if (Array.isArray(value)) addList(value, depth + 1);
  else addObject(value, depth + 1);
}

function addScalar(value: unknown): void {
  addWord(kinds.scalar);
  // As in JSON: -0 is 0, and NaN, infinity and undefined are null.
  const isValue = typeof value === "boolean" || typeof value === "bigint" || Number.isFinite(value);
  addChars(isValue ? String(value) : "null");
}

function addList(values: readonly unknown[], depth: number): void {
  addWord(kinds.list);
  for (let index = 0; index < values.length; index++) addValue(values[index], depth);
  addWord(kinds.end);
}

function addObject(value: object, depth: number): void {
  if (Object.getPrototypeOf(value) !== Object.prototype && addOther(value, depth)) return;
  addWord(kinds.fields);
  for (const name in value) {
    const field = (value as Readonly<Record<string, unknown>>)[name];
    if (!isMessageContent(name, field)) continue;
    addChars(name);
    const isPlain = typeof field === "string" && name === "content" && (depth === 1 || isResultBlock(value));
    addValue(isPlain ? [{ type: "text", text: field }] : field, depth);
  }
  addWord(kinds.end);
}

// Bytes and URLs, as the AI SDK has them.
function addOther(value: object, depth: number): boolean {
  const { toJSON } = value as { toJSON?: unknown };
  if (ArrayBuffer.isView(value)) addBytes(value);
  else if (typeof toJSON === "function") addValue(toJSON.call(value, ""), depth);
  else return false;
  return true;
}

function addText(text: string): void {
  if (text.length < minLongChars) {
    addWord(kinds.text);
    addChars(text);
    return;
  }
  addWord(kinds.longText);
  addWord(text.length);
  if (text.length <= chunkChars) addChunk(text);
  else for (let at = 0; at < text.length; at += chunkChars) addChunk(text.slice(at, at + chunkChars));
}

// For shorter strings, the call that copies them costs more than a loop.
const minLongChars = 48;
// V8 knows without a scan that a string of one-byte characters has none of these.
const wide = /[\u0100-\uffff]/;

function addChunk(text: string): void {
  addLanes(bytes.write(text, wide.test(text) ? "utf16le" : "latin1"));
}

function addBytes(view: ArrayBufferView): void {
  addWord(kinds.bytes);
  addWord(view.byteLength);
  const source = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  for (let at = 0; at < source.length; at += bytes.length) {
    const part = source.subarray(at, at + bytes.length);
    bytes.set(part);
    addLanes(part.length);
  }
}

// Four lanes run in parallel in the processor. Each step is a bijection, so one changed word always changes the
// state.
function addLanes(length: number): void {
  const end = (length + 15) & ~15;
  for (let index = length; index < end; index++) bytes[index] = 0;
  let a = state[0] as number;
  let b = state[1] as number;
  let c = state[2] as number;
  let d = state[3] as number;
  for (let index = 0; index < end >> 2; index += 4) {
    a = Math.imul(rotate(a, 13) ^ (words[index] as number), 0x9e3779b1);
    b = Math.imul(rotate(b, 15) ^ (words[index + 1] as number), 0x85ebca77);
    c = Math.imul(rotate(c, 17) ^ (words[index + 2] as number), 0xc2b2ae3d);
    d = Math.imul(rotate(d, 19) ^ (words[index + 3] as number), 0x27d4eb2f);
  }
  state[0] = a;
  state[1] = b;
  state[2] = c;
  state[3] = d;
}

function addChars(text: string): void {
  addWord(text.length);
  let a = state[0] as number;
  let b = state[1] as number;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    a = Math.imul(rotate(a, 13) ^ unit, 0x9e3779b1);
    b = Math.imul(rotate(b, 15) + unit, 0x85ebca77);
  }
  state[0] = a;
  state[1] = b;
}

function addWord(word: number): void {
  state[0] = Math.imul(rotate(state[0] as number, 13) ^ word, 0x9e3779b1);
  state[1] = Math.imul(rotate(state[1] as number, 15) + word, 0x85ebca77);
}

function rotate(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}

// Mixes every lane into every character of the hash.
function finish(): string {
  let a = state[0] as number;
  let b = state[1] as number;
  let c = state[2] as number;
  let d = state[3] as number;
  for (let round = 0; round < 4; round++) {
    a = scramble(a + rotate(d, 11));
    b = scramble(b ^ a);
    c = scramble(c + rotate(b, 7));
    d = scramble(d ^ c);
  }
  outcomeWords[0] = a;
  outcomeWords[1] = b;
  outcomeWords[2] = c ^ d;
  return outcome.toString("base64url");
}

// The finalizer of MurmurHash3: every bit of the word changes half of the others.
function scramble(word: number): number {
  const mixed = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
  const again = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return again ^ (again >>> 16);
}
