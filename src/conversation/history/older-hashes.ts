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
  const state = Int32Array.of(1, 2, 3, 4);
  addValue(state, message, 0);
  let [a = 0, b = 0, c = 0, d = 0] = state;
  // Mixes every lane into every character of the hash.
  for (let round = 0; round < 4; round++) {
    a = scramble(a + rotate(d, 11));
    b = scramble(b ^ a);
    c = scramble(c + rotate(b, 7));
    d = scramble(d ^ c);
  }
  return Buffer.from(Int32Array.of(a, b, c ^ d).buffer).toString("base64url");
}

// The hash reads one stream of words that is different for different contents: each value starts with its kind, each
// string with its length.
const kinds = { text: 1, longText: 2, bytes: 3, scalar: 4, list: 5, fields: 6, end: 7 } as const;

function addValue(state: Int32Array, value: unknown, depth: number): void {
  const maxDepth = 500;
  if (typeof value === "string") addText(state, value);
  else if (typeof value !== "object" || value === null) {
    addWord(state, kinds.scalar);
    // As in JSON: -0 is 0, and NaN, infinity and undefined are null.
    const isValue = typeof value === "boolean" || typeof value === "bigint" || Number.isFinite(value);
    addChars(state, isValue ? String(value) : "null");
  } else if (depth > maxDepth)
    throw new ContextError("invalid_message", `message is nested more than ${maxDepth} levels deep`);
  else if (Array.isArray(value)) {
    addWord(state, kinds.list);
    for (const each of value) addValue(state, each, depth + 1);
    addWord(state, kinds.end);
  } else addObject(state, value, depth + 1);
}

function addObject(state: Int32Array, value: object, depth: number): void {
  const isOther = Object.getPrototypeOf(value) !== Object.prototype;
  // Bytes and URLs, as the AI SDK has them.
  const { toJSON } = value as { toJSON?: unknown };
  if (isOther && ArrayBuffer.isView(value)) {
    addWord(state, kinds.bytes);
    addWord(state, value.byteLength);
    addBytes(state, new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
    return;
  }
  if (isOther && typeof toJSON === "function") {
    addValue(state, toJSON.call(value, ""), depth);
    return;
  }
  addWord(state, kinds.fields);
  for (const name in value) {
    const field = (value as Readonly<Record<string, unknown>>)[name];
    if (!isMessageContent(name, field)) continue;
    addChars(state, name);
    const isPlain = typeof field === "string" && name === "content" && (depth === 1 || isResultBlock(value));
    addValue(state, isPlain ? [{ type: "text", text: field }] : field, depth);
  }
  addWord(state, kinds.end);
}

function addText(state: Int32Array, text: string): void {
  if (text.length < 48) {
    addWord(state, kinds.text);
    addChars(state, text);
    return;
  }
  addWord(state, kinds.longText);
  addWord(state, text.length);
  const chunkLength = 16_384;
  for (let at = 0; at < text.length; at += chunkLength) {
    const chunk = text.slice(at, at + chunkLength);
    addBytes(state, Buffer.from(chunk, /[\u0100-\uffff]/.test(chunk) ? "utf16le" : "latin1"));
  }
}

/** Adds four words at a time, and zeros after the last byte. */
function addBytes(state: Int32Array, bytes: Uint8Array): void {
  const padded = new Uint8Array((bytes.length + 15) & ~15);
  padded.set(bytes);
  const words = new Int32Array(padded.buffer);
  let [a = 0, b = 0, c = 0, d = 0] = state;
  for (let index = 0; index < words.length; index += 4) {
    a = Math.imul(rotate(a, 13) ^ (words[index] as number), 0x9e3779b1);
    b = Math.imul(rotate(b, 15) ^ (words[index + 1] as number), 0x85ebca77);
    c = Math.imul(rotate(c, 17) ^ (words[index + 2] as number), 0xc2b2ae3d);
    d = Math.imul(rotate(d, 19) ^ (words[index + 3] as number), 0x27d4eb2f);
  }
  state.set([a, b, c, d]);
}

function addChars(state: Int32Array, text: string): void {
  addWord(state, text.length);
  for (let index = 0; index < text.length; index++) addWord(state, text.charCodeAt(index));
}

function addWord(state: Int32Array, word: number): void {
  state[0] = Math.imul(rotate(state[0] as number, 13) ^ word, 0x9e3779b1);
  state[1] = Math.imul(rotate(state[1] as number, 15) + word, 0x85ebca77);
}

function rotate(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}

// The finalizer of MurmurHash3: every bit of the word changes half of the others.
function scramble(word: number): number {
  const mixed = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
  const again = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return again ^ (again >>> 16);
}
