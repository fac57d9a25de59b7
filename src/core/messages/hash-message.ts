/** Hashes the content of a message, for histories that come back as new objects: with a key to compare messages, without
 *  one to name them. */
import { Buffer } from "../bytes.ts";
import { createHash } from "../crypto.ts";
import { ContextError } from "../errors.ts";
import { createHashKey, createKeyedHash, type HashSequence } from "../text/index.ts";
import { isCacheMarker } from "./fields.ts";

/** Returns equal hashes for messages that JSON writes the same way. Ignores cache markers, which move from call to
 *  call. Treats a plain text like a list of that one text, in a message or a result, because clients use both forms.
 *  Without `hash`, the result can be compared only within this process. */
export function hashMessage(message: object, hash: HashSequence = ofProcess()): string {
  hash.start();
  addValue(hash, message, 0);
  return hash.finish();
}

let processHash: HashSequence | undefined;

/** Made when it is first needed: most commands hash no message. */
function ofProcess(): HashSequence {
  processHash ??= createKeyedHash(createHashKey());
  return processHash;
}

/** Returns a name for the content of a message, of 132 bits. It is the same in every process, and nobody can find two
 *  messages with the same name. */
export function nameMessage(message: object): string {
  let sha256 = createHash("sha256");
  // Each update takes longer than hashing a few hundred bytes, so short values are collected.
  const collected = Buffer.alloc(2_000);
  let used = 0;
  const flush = (): void => {
    sha256.update(collected.subarray(0, used));
    used = 0;
  };
  const addWord = (word: number): void => {
    if (used + 4 > collected.length) flush();
    for (let shift = 0; shift < 32; shift += 8) collected[used++] = word >> shift;
  };
  return hashMessage(message, {
    start() {
      sha256 = createHash("sha256");
      used = 0;
    },
    addWord,
    addText(text) {
      addWord(text.length);
      if (used + 2 * text.length > collected.length) flush();
      if (2 * text.length > collected.length) sha256.update(text, "utf16le");
      else used += collected.write(text, used, "utf16le");
    },
    addBytes(bytes) {
      addWord(bytes.length);
      flush();
      sha256.update(bytes);
    },
    finish() {
      flush();
      return sha256.digest("base64url").slice(0, 22);
    },
  });
}

// Different contents give different sequences: each value starts with its kind.
const marks = { text: 1, bytes: 2, scalar: 3, list: 4, fields: 5, end: 6 } as const;
const maxHashedDepth = 500;

function addValue(hash: HashSequence, value: unknown, depth: number): void {
  if (typeof value === "string") {
    hash.addWord(marks.text);
    hash.addText(value);
  } else if (typeof value !== "object" || value === null) {
    hash.addWord(marks.scalar);
    // As in JSON: -0 is 0, and NaN, infinity and undefined are null.
    const isValue = typeof value === "boolean" || typeof value === "bigint" || Number.isFinite(value);
    hash.addText(isValue ? String(value) : "null");
  } else if (depth > maxHashedDepth)
    throw new ContextError("invalid_message", `message is nested more than ${maxHashedDepth} levels deep`);
  else if (Array.isArray(value)) addList(hash, value, depth + 1);
  else addObject(hash, value, depth + 1);
}

function addList(hash: HashSequence, values: readonly unknown[], depth: number): void {
  hash.addWord(marks.list);
  for (let index = 0; index < values.length; index++) addValue(hash, values[index], depth);
  hash.addWord(marks.end);
}

function addObject(hash: HashSequence, value: object, depth: number): void {
  if (Object.getPrototypeOf(value) !== Object.prototype && addOther(hash, value, depth)) return;
  hash.addWord(marks.fields);
  for (const name in value) {
    const field = (value as Readonly<Record<string, unknown>>)[name];
    if (!isMessageContent(name, field)) continue;
    hash.addText(name);
    const isPlain = typeof field === "string" && name === "content" && (depth === 1 || isResultBlock(value));
    addValue(hash, isPlain ? [{ type: "text", text: field }] : field, depth);
  }
  hash.addWord(marks.end);
}

export function isResultBlock(value: object): boolean {
  return (value as { type?: unknown }).type === "tool_result";
}

// Bytes and URLs, as the AI SDK has them.
function addOther(hash: HashSequence, value: object, depth: number): boolean {
  const { toJSON } = value as { toJSON?: unknown };
  if (ArrayBuffer.isView(value)) {
    hash.addWord(marks.bytes);
    hash.addBytes(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
  } else if (typeof toJSON === "function") addValue(hash, toJSON.call(value, ""), depth);
  else return false;
  return true;
}

/** Whether a field belongs to the content of a message: it is not a cache marker, and JSON writes it. */
export function isMessageContent(name: string, field: unknown): boolean {
  if (field === undefined || isCacheMarker(name)) return false;
  return name !== "providerOptions" || !hasOnlyMarkers(field);
}

// The AI SDK keeps its markers in a provider's options, which may hold nothing else.
function hasOnlyMarkers(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.entries(value).every(([name, field]) => isCacheMarker(name) || hasOnlyMarkers(field));
}
