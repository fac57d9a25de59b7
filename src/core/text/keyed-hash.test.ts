import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createChaskey, createHashKey, createKeyedHash, digestText, hashLength, isHashKey } from "./keyed-hash.ts";

/** Tags of Chaskey-12 for the key below and the messages 00 01 02 …, by length (reference implementation of N. Mouha,
 *  2015). */
const published: Readonly<Record<number, readonly number[]>> = {
  0: [0x43cb1f41, 0x51eba0c2, 0xff0a8ac3, 0x7ee3f642],
  1: [0xf9ac2067, 0x9c35a846, 0x441aad3d, 0x777b7330],
  2: [0x57da70c5, 0x2a873cb0, 0x19ee8b2a, 0x165cd82e],
  3: [0x8c5e6ab9, 0x5035adfb, 0xbff69f98, 0x965516d9],
  4: [0x0b2b62db, 0x1e9e3f50, 0xa1b8dcad, 0xb4279ae0],
  15: [0x03cfb44b, 0x283c8163, 0xfca71448, 0xc40a0aea],
  16: [0x5dd0e2a9, 0xfb5eac8c, 0x633a392e, 0x500c36f3],
  17: [0x8b5f6d5a, 0x202314f6, 0x22092368, 0x9639e606],
  31: [0x1d3d30b1, 0x01d74fca, 0x3b2eb54c, 0xd8cd36b4],
  32: [0x77962784, 0x07c647fa, 0xdd752c0f, 0xd2f5a799],
  33: [0xd74bb867, 0x2c0dfb3a, 0xb697e9cd, 0x5658edda],
  48: [0xf36e748b, 0x8f34677f, 0x1e00ba1b, 0xdd7da46d],
  63: [0x2dd072e1, 0x42b89efe, 0xfb26b615, 0x049aa451],
};

it("has the published tags, in one piece and in several", () => {
  const chaskey = createChaskey(Int32Array.of(0x833d3433, 0x009f389f, 0x2398e64f, 0x417acf39));
  for (const [length, tag] of Object.entries(published)) {
    const bytes = new Uint8Array(80).fill(0xff);
    for (let index = 0; index < Number(length); index++) bytes[index] = index;
    for (const absorbed of [0, 16, 32].filter((count) => count < Number(length) || count === 0)) {
      const found = new Int32Array(4);
      chaskey.start();
      chaskey.absorb(new Int32Array(bytes.slice().buffer), absorbed / 4);
      chaskey.end(new Int32Array(bytes.slice(absorbed).buffer), Number(length) - absorbed, found);
      expect([...found].map((word) => word >>> 0)).toEqual(tag);
    }
  }
});

/** Chaskey-12 as its paper defines it, on numbers of 128 bits. */
function referenceTag(key: bigint, message: readonly number[]): bigint {
  const isWhole = message.length > 0 && message.length % 16 === 0;
  const padded = isWhole ? [...message] : [...message, 1];
  while (padded.length % 16 !== 0) padded.push(0);
  const double = (value: bigint) => BigInt.asUintN(128, value << 1n) ^ (value >> 127n === 1n ? 0x87n : 0n);
  const subkey = isWhole ? double(key) : double(double(key));
  let state = key;
  for (let at = 0; at < padded.length; at += 16) {
    const block = padded.slice(at, at + 16).reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n);
    state ^= block ^ (at + 16 === padded.length ? subkey : 0n);
    for (let round = 0; round < 12; round++) state = permute(state);
  }
  return state ^ subkey;
}

function permute(state: bigint): bigint {
  let [a, b, c, d] = [0n, 32n, 64n, 96n].map((shift) => BigInt.asUintN(32, state >> shift)) as [
    bigint,
    bigint,
    bigint,
    bigint,
  ];
  const add = (left: bigint, right: bigint) => BigInt.asUintN(32, left + right);
  const turn = (word: bigint, count: bigint) => BigInt.asUintN(32, word << count) | (word >> (32n - count));
  [a, c] = [add(a, b), add(c, d)];
  [b, d] = [turn(b, 5n) ^ a, turn(d, 8n) ^ c];
  [a, c] = [add(turn(a, 16n), d), add(c, b)];
  [b, d] = [turn(b, 7n) ^ c, turn(d, 13n) ^ a];
  return a | (b << 32n) | (turn(c, 16n) << 64n) | (d << 96n);
}

const readNumber = (words: Iterable<number>) =>
  [...words].reduceRight((value, word) => (value << 32n) | BigInt(word >>> 0), 0n);

it("agrees with the paper's definition for any key and message", () => {
  const word = fc.oneof(fc.constantFrom(0, 1, -1, 0x7fffffff, -0x80000000), fc.integer());
  const check = (key: readonly number[], message: Uint8Array) => {
    const words = new Int32Array(Math.ceil(message.length / 16) * 4 + 4).fill(-1);
    new Uint8Array(words.buffer).set(message);
    const found = new Int32Array(4);
    const chaskey = createChaskey(Int32Array.from(key));
    chaskey.start();
    chaskey.end(words, message.length, found);
    expect(readNumber(found)).toBe(referenceTag(readNumber(key), [...message]));
  };
  const keys = fc.array(word, { minLength: 4, maxLength: 4 });
  fc.assert(fc.property(keys, fc.uint8Array({ maxLength: 70 }), check));
  for (const length of [0, 5, 16]) check([1, 2, 3, 0], new Uint8Array(length));
});

it("digests a text with the width of its characters, and tells lone surrogates apart", () => {
  const narrow = createHash("sha256").update("caf\u00e9", "latin1").digest("base64url");
  expect(digestText("caf\u00e9")).toBe(`n${narrow}`);
  const texts = ["", "W[", "\u5b57", "\ud800", "\ud801", "\udc00", "\ufffd", "\ud800\udc00", "\udc00\ud800"];
  expect(new Set(texts.map(digestText)).size).toBe(texts.length);
});

describe("a keyed hash", () => {
  const key = createHashKey();
  const hash = createKeyedHash(key);

  it("is the same for the same key and text, and another for another key", () => {
    const check = (text: string) => {
      const tag = hash.text(text);
      expect(tag).toHaveLength(hashLength);
      expect(createKeyedHash(key).text(text)).toBe(tag);
      expect(createKeyedHash(createHashKey()).text(text)).not.toBe(tag);
    };
    fc.assert(fc.property(fc.string({ unit: "binary" }), check));
  });

  it("differs for texts that differ anywhere, of any length", () => {
    for (const length of [1, 3, 4, 23, 24, 25, 47, 7_999, 8_000, 8_001, 16_000, 40_000]) {
      for (const unit of ["x", "é", "字", "\ud800"]) {
        const text = unit.repeat(length);
        const others = [0, length >> 1, length - 1].map((at) => `${text.slice(0, at)}y${text.slice(at + 1)}`);
        const hashes = [text, `${text}\0`, `${text}x`, text.slice(1), ...new Set(others)].map(hash.text);
        expect(new Set(hashes).size).toBe(hashes.length);
      }
    }
  });

  it("tells lone surrogates apart, which UTF-8 writes all alike", () => {
    const hashes = ["\ud800", "\ud801", "\udc00", "\ufffd", "\ud800\udc00", "\udc00\ud800"].map(hash.text);
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  it("hashes a sequence by its parts, not by what they are together", () => {
    const sequence = (...parts: readonly (string | number | Uint8Array)[]) => {
      hash.start();
      for (const part of parts) {
        if (typeof part === "number") hash.addWord(part);
        else if (typeof part === "string") hash.addText(part);
        else hash.addBytes(part);
      }
      return hash.finish();
    };
    const hashes = [
      ...[sequence("ab", "c"), sequence("a", "bc"), sequence("abc"), sequence("abc", ""), sequence("", "abc")],
      ...[
        sequence(1),
        sequence(1, 0),
        sequence(0, 1),
        sequence("x".repeat(40_000), 1),
        sequence("x".repeat(40_000), 2),
      ],
      ...[Uint8Array.of(1), Uint8Array.of(1, 0), new Uint8Array(20_000), new Uint8Array(20_001)].map((each) =>
        sequence(each),
      ),
    ];
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  it("stays the same between versions, because stores keep hashes with their key", () => {
    const wordBytes = (word: number) => [word & 255, (word >> 8) & 255, (word >> 16) & 255, word >>> 24];
    const fillWord = (bytes: readonly number[]) => [...bytes, ...new Uint8Array(-bytes.length & 3)];
    const encode = (part: string | number | Uint8Array): readonly number[] => {
      if (typeof part === "number") return wordBytes(part);
      if (typeof part !== "string") return [...wordBytes(part.length), ...fillWord([...part])];
      const isWide = /[^\0-\xff]/.test(part);
      const bytes = Buffer.from(part, isWide ? "utf16le" : "latin1");
      return [...wordBytes(2 * part.length + Number(isWide)), ...fillWord([...bytes])];
    };
    const fixed = createKeyedHash("AAECAwQFBgcICQoLDA0ODw");
    const key = readNumber(new Int32Array(Uint8Array.from({ length: 16 }, (_each, index) => index).buffer));
    const check = (...parts: readonly (string | number | Uint8Array)[]) => {
      // What an earlier hash has left behind must not count.
      fixed.text("\uffff".repeat(9_000));
      fixed.start();
      for (const part of parts) {
        if (typeof part === "number") fixed.addWord(part);
        else if (typeof part === "string") fixed.addText(part);
        else fixed.addBytes(part);
      }
      const tag = referenceTag(key, parts.flatMap(encode));
      const bytes = Array.from({ length: 16 }, (_each, index) => Number((tag >> BigInt(8 * index)) & 255n));
      expect(fixed.finish()).toBe(Buffer.from(bytes).toString("base64url"));
    };
    const bytes = (length: number) => Uint8Array.from({ length }, (_each, index) => index + 1);
    for (let length = 0; length < 40; length++) {
      check("z".repeat(length), 7);
      check("字".repeat(length), 7);
      check(1, 2, bytes(length), 7);
    }
    // The space for words that are not hashed yet has 8,192 of them.
    for (let free = 0; free < 6; free++) {
      const words = Array.from({ length: 8_192 - free }, (_each, index) => index + 1);
      for (const parts of [[], [7, 7, 7, 7, 7, 7], ["字".repeat(9)], [bytes(17)]]) check(...words, ...parts);
    }
    check("字".repeat(8_001), "z".repeat(16_000), bytes(16_003), 7);
  });

  it("has keys of 128 random bits", () => {
    expect(isHashKey(key)).toBe(true);
    expect(createHashKey()).not.toBe(createHashKey());
    for (const other of [undefined, "", "short", `${key}x`, 12, [key]]) expect(isHashKey(other)).toBe(false);
  });
});
