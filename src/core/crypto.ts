/** SHA-256 and random bytes, synchronous in every runtime: Node's where there is one, plain code in Workers and browsers. */
import { Buffer } from "./bytes.ts";

/** Returns Node's module. It is loaded with the first hash, so that importing a door costs less. Asked for in this way, it is no import,
 *  and a bundle for a browser has none that it cannot find. */
function findNative(): typeof import("node:crypto") | undefined {
  return globalThis.process?.getBuiltinModule?.("node:crypto");
}

let native: ReturnType<typeof findNative> | null = null;

/** What we use of Node's Hash. */
export interface Hash {
  update(data: string | NodeJS.ArrayBufferView, encoding?: "utf8" | "utf16le" | "latin1"): Hash;
  digest(): Buffer;
  digest(encoding: "hex" | "base64url"): string;
  copy(): Hash;
}

export function createHash(algorithm: "sha256"): Hash {
  if (native === null) native = findNative();
  return native === undefined ? createPlainHash() : native.createHash(algorithm);
}

export function randomBytes(size: number): Buffer {
  if (native === null) native = findNative();
  return native?.randomBytes(size) ?? Buffer.from(globalThis.crypto.getRandomValues(new Uint8Array(size)).buffer);
}

/** Returns a random UUID (RFC 9562, version 4). */
export function randomUUID(): string {
  const bytes = randomBytes(16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** FIPS 180-4. Exported for the test that compares it with Node's. */
export function createPlainHash(from?: { state: Int32Array; rest: Uint8Array; length: number }): Hash {
  const state = from?.state.slice() ?? Int32Array.from(initialState);
  let rest = from?.rest ?? new Uint8Array(0);
  let length = from?.length ?? 0;
  const hash: Hash = {
    update(data, encoding = "utf8") {
      const added =
        typeof data === "string"
          ? Buffer.from(data, encoding)
          : new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength);
      length += added.length;
      const bytes = rest.length === 0 ? added : Buffer.concat([rest, added]);
      const whole = bytes.length & ~63;
      for (let at = 0; at < whole; at += 64) addBlock(state, bytes, at);
      rest = bytes.slice(whole);
      return hash;
    },
    digest(encoding?: "hex" | "base64url") {
      const end = new Uint8Array(rest.length < 56 ? 64 : 128);
      end.set(rest);
      end[rest.length] = 0x80;
      const view = new DataView(end.buffer);
      view.setUint32(end.length - 8, Math.floor(length / 2 ** 29));
      view.setUint32(end.length - 4, length * 8);
      for (let at = 0; at < end.length; at += 64) addBlock(state, end, at);
      const digest = Buffer.alloc(32);
      state.forEach((word, index) => {
        new DataView(digest.buffer).setInt32(4 * index, word);
      });
      return (encoding === undefined ? digest : digest.toString(encoding)) as Buffer & string;
    },
    copy: () => createPlainHash({ state, rest, length }),
  };
  return hash;
}

/** The first 32 bits of the fractional parts of square roots and cube roots of the first primes. */
const primes: number[] = [];
for (let number = 2; primes.length < 64; number++) {
  if (primes.every((prime) => number % prime !== 0)) primes.push(number);
}
const fraction = (value: number): number => ((value - Math.floor(value)) * 2 ** 32) | 0;
const initialState = primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)));
const roundKeys = Int32Array.from(primes, (prime) => fraction(Math.cbrt(prime)));
const schedule = new Int32Array(64);

function addBlock(state: Int32Array, bytes: Uint8Array, start: number): void {
  for (let index = 0; index < 16; index++) {
    const at = start + 4 * index;
    schedule[index] = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
  }
  for (let index = 16; index < 64; index++) {
    const [early, late] = [schedule[index - 15]!, schedule[index - 2]!];
    const first = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3);
    const second = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10);
    schedule[index] = (schedule[index - 16]! + first + schedule[index - 7]! + second) | 0;
  }
  let [a, b, c, d] = [state[0]!, state[1]!, state[2]!, state[3]!];
  let [e, f, g, h] = [state[4]!, state[5]!, state[6]!, state[7]!];
  for (let index = 0; index < 64; index++) {
    const chosen = (e & f) ^ (~e & g);
    const first = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + chosen + roundKeys[index]! + schedule[index]!) | 0;
    const second = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + first) | 0;
    d = c;
    c = b;
    b = a;
    a = (first + second) | 0;
  }
  for (const [index, word] of [a, b, c, d, e, f, g, h].entries()) state[index]! += word;
}

function turn(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}
