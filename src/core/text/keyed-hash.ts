/** A keyed hash of 128 bits for comparing: whether a line, a result or a message is the same as another one. Without the
 *  key nobody can find two texts with the same hash, also not who knows this file. The hash is Chaskey-12 (N. Mouha,
 *  eprint.iacr.org/2015/1182): short, synchronous, and the same in every runtime. A hash never becomes part of a text
 *  that is sent, because two processes with different keys must send the same bytes. */
import { Buffer } from "../bytes.ts";
import { createHash, randomBytes } from "../crypto.ts";

/** Hashes a sequence of words, texts and bytes. Each text and each row of bytes is hashed with its length, so different
 *  sequences of the same kinds never look alike. */
export interface HashSequence {
  /** Starts a sequence. Only one can be open. */
  start(): void;
  addWord(word: number): void;
  addText(text: string): void;
  addBytes(bytes: Uint8Array): void;
  /** Returns the hash of the sequence. */
  finish(): string;
}

export interface KeyedHash extends HashSequence {
  /** Returns the hash of one text: `hashLength` characters. Two texts that differ only in lone surrogates differ. */
  text(text: string): string;
}

/** The length of a hash in characters of base64url. */
export const hashLength = 22;

/** Returns a new random key, as text for JSON. */
export function createHashKey(): string {
  return randomBytes(16).toString("base64url");
}

/** Returns whether a text is a key. */
export function isHashKey(key: unknown): key is string {
  return typeof key === "string" && /^[\w-]{22}$/.test(key);
}

/** Returns all 256 bits of a SHA-256, as text. It takes half the time of a keyed hash, so of a large text the digest is
 *  computed once, and then hashed with the key or made part of an id. Alone, cut or without the key it compares nothing.
 *  Two texts that differ only in lone surrogates differ. */
export function digestText(text: string): string {
  const isWide = wide.test(text);
  // The same bytes are other characters in the other width.
  const width = isWide ? "w" : "n";
  return (
    width +
    createHash("sha256")
      .update(text, isWide ? "utf16le" : "latin1")
      .digest("base64url")
  );
}

export function createKeyedHash(key: string): KeyedHash {
  const chaskey = createChaskey(new Int32Array(Uint8Array.from(Buffer.from(key, "base64url")).buffer));
  const scratch = createScratch(chaskey);
  const tagBytes = Buffer.allocUnsafeSlow(16);
  const tag = new Int32Array(tagBytes.buffer);
  const start = (): void => {
    scratch.reset();
    chaskey.start();
  };
  const addText = (text: string): void => {
    const isWide = wide.test(text);
    // Length and width say where a text ends, so no two sequences are written the same way.
    scratch.addWord((text.length << 1) | Number(isWide));
    for (let at = 0; at < text.length; at += chunkCharacters)
      scratch.addChunk(text.slice(at, at + chunkCharacters), isWide);
  };
  const finish = (): string => {
    chaskey.end(scratch.words, 4 * scratch.used(), tag);
    return tagBytes.toString("base64url");
  };
  return {
    start,
    addWord: scratch.addWord,
    addText,
    addBytes: scratch.addBytes,
    finish,
    text(text) {
      start();
      addText(text);
      return finish();
    },
  };
}

/** The words of a sequence since the last flush. A text is written with one copy and hashed where it stands. */
function createScratch(chaskey: Chaskey) {
  const bytes = Buffer.allocUnsafeSlow(4 * scratchWords);
  const words = new Int32Array(bytes.buffer);
  let used = 0;
  /** Hashes all words but the last few: the last block of a sequence is hashed differently, with padding. */
  const makeRoom = (wanted: number): void => {
    if (used + wanted <= scratchWords) return;
    const whole = (used - 1) & ~3;
    chaskey.absorb(words, whole);
    words.copyWithin(0, whole, used);
    used -= whole;
  };
  const addWord = (word: number): void => {
    makeRoom(1);
    words[used++] = word;
  };
  /** For short texts, a call that copies them takes longer than a loop. */
  const copyText = (text: string, isWide: boolean, from: number): number => {
    for (let index = 0; index < text.length; index++) {
      const unit = text.charCodeAt(index);
      bytes[isWide ? from + 2 * index : from + index] = unit;
      if (isWide) bytes[from + 2 * index + 1] = unit >> 8;
    }
    return isWide ? 2 * text.length : text.length;
  };
  return {
    words,
    used: () => used,
    reset(): void {
      used = 0;
    },
    addWord,
    addChunk(text: string, isWide: boolean): void {
      makeRoom((text.length >> 1) + 1);
      const from = 4 * used;
      const isShort = text.length < fewCharacters;
      const written = isShort ? copyText(text, isWide, from) : bytes.write(text, from, isWide ? "utf16le" : "latin1");
      for (let index = written; (index & 3) !== 0; index++) bytes[from + index] = 0;
      used += (written + 3) >> 2;
    },
    addBytes(added: Uint8Array): void {
      addWord(added.length);
      for (let at = 0; at < added.length; at += 2 * chunkCharacters) {
        const part = added.subarray(at, at + 2 * chunkCharacters);
        makeRoom((part.length >> 2) + 1);
        words[used + (part.length >> 2)] = 0;
        bytes.set(part, 4 * used);
        used += (part.length + 3) >> 2;
      }
    },
  };
}

const scratchWords = 8_192;
/** Two bytes each, they fill at most half of the scratch space. An even number of bytes and words. */
const chunkCharacters = 8_000;
const fewCharacters = 24;
// V8 knows without a scan that a string of one-byte characters has none of these.
const wide = /[\u0100-\uffff]/;

interface Chaskey {
  start(): void;
  /** Hashes this many words, a multiple of 4. The message must go on after them. */
  absorb(words: Int32Array, count: number): void;
  /** Hashes the rest of the message and writes the tag. `words` needs room for the last block, which is filled up. */
  end(words: Int32Array, byteLength: number, tag: Int32Array): void;
}

/** The permutation is written out once, in `absorb`. The last block passes through it, too, mixed with a subkey. */
export function createChaskey(key: Int32Array): Chaskey {
  const whole = timesTwo(key);
  const padded = timesTwo(whole);
  const state = new Int32Array(4);
  const last = new Int32Array(4);
  const absorb = (words: Int32Array, count: number): void => {
    let a = state[0] as number;
    let b = state[1] as number;
    let c = state[2] as number;
    let d = state[3] as number;
    for (let index = 0; index < count; index += 4) {
      a ^= words[index] as number;
      b ^= words[index + 1] as number;
      c ^= words[index + 2] as number;
      d ^= words[index + 3] as number;
      for (let round = 0; round < 12; round++) {
        a = (a + b) | 0;
        c = (c + d) | 0;
        b = ((b << 5) | (b >>> 27)) ^ a;
        d = ((d << 8) | (d >>> 24)) ^ c;
        a = (((a << 16) | (a >>> 16)) + d) | 0;
        c = (c + b) | 0;
        b = ((b << 7) | (b >>> 25)) ^ c;
        d = ((d << 13) | (d >>> 19)) ^ a;
        c = (c << 16) | (c >>> 16);
      }
    }
    state[0] = a;
    state[1] = b;
    state[2] = c;
    state[3] = d;
  };
  return {
    absorb,
    start: () => state.set(key),
    end(words, byteLength, tag) {
      const rest = byteLength === 0 ? 0 : ((byteLength - 1) >> 4) << 2;
      absorb(words, rest);
      const isWhole = byteLength - 4 * rest === 16;
      const subkey = isWhole ? whole : padded;
      if (!isWhole) pad(words, byteLength, rest + 4);
      for (let index = 0; index < 4; index++) last[index] = (words[rest + index] as number) ^ (subkey[index] as number);
      absorb(last, 4);
      for (let index = 0; index < 4; index++) tag[index] = (state[index] as number) ^ (subkey[index] as number);
    },
  };
}

/** Writes one bit after the message, and zeros up to the word at `end`. */
function pad(words: Int32Array, byteLength: number, end: number): void {
  const shift = 8 * (byteLength & 3);
  const at = byteLength >> 2;
  words[at] = ((words[at] as number) & ((1 << shift) - 1)) | (1 << shift);
  for (let index = at + 1; index < end; index++) words[index] = 0;
}

function timesTwo(words: Int32Array): Int32Array {
  const [a, b, c, d] = words as unknown as [number, number, number, number];
  return Int32Array.of(
    (a << 1) ^ (d < 0 ? 0x87 : 0),
    (b << 1) | (a >>> 31),
    (c << 1) | (b >>> 31),
    (d << 1) | (c >>> 31),
  );
}
