/** Node's Buffer, or where a runtime has none (Workers, browsers), the part of it that we use, in plain code. Buffer is several
 *  times faster, so it is used wherever it exists. Both give the same results. */

type Encoding = "utf8" | "utf16le" | "latin1" | "base64" | "base64url" | "hex";

/** Exported for the test that compares it with Node's. */
export function createPlainBuffer(): typeof globalThis.Buffer {
  const from = (
    value: string | ArrayBuffer | ArrayLike<number>,
    second?: Encoding | number,
    length?: number,
  ): PlainBuffer => {
    if (typeof value === "string") return encodeText(value, second as Encoding | undefined);
    if (value instanceof ArrayBuffer) return new PlainBuffer(value, second as number | undefined, length);
    const copy = new PlainBuffer(value.length);
    copy.set(value);
    return copy;
  };
  const concat = (parts: readonly Uint8Array[]): PlainBuffer => {
    const joined = new PlainBuffer(parts.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const part of parts) {
      joined.set(part, at);
      at += part.length;
    }
    return joined;
  };
  const alloc = (size: number): PlainBuffer => new PlainBuffer(size);
  const methods = { from, concat, alloc, allocUnsafeSlow: alloc, byteLength: countBytes };
  return Object.assign(PlainBuffer, methods) as unknown as typeof globalThis.Buffer;
}

class PlainBuffer extends Uint8Array {
  override toString(encoding: Encoding = "utf8", start = 0, end: number = this.length): string {
    const bytes = this.subarray(start, end);
    if (encoding === "utf8") return utf8Decoder.decode(bytes);
    if (encoding === "hex") return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    if (encoding === "base64") return encodeBase64(bytes);
    if (encoding === "base64url")
      return encodeBase64(bytes).replace(/=+$/, "").replaceAll("+", "-").replaceAll("/", "_");
    const step = encoding === "utf16le" ? 2 : 1;
    let text = "";
    for (let at = 0; at + step <= bytes.length; at += step) {
      text += String.fromCharCode(step === 2 ? bytes[at]! | (bytes[at + 1]! << 8) : bytes[at]!);
    }
    return text;
  }

  /** `write(text, encoding)` or `write(text, offset, encoding)`. */
  write(text: string, ...rest: [Encoding] | [number, Encoding]): number {
    const [offset, encoding] = rest.length === 1 ? [0, rest[0]] : rest;
    const step = encoding === "utf16le" ? 2 : 1;
    const length = Math.min(text.length, Math.floor((this.length - offset) / step));
    for (let index = 0; index < length; index++) {
      const unit = text.charCodeAt(index);
      this[offset + step * index] = unit;
      if (step === 2) this[offset + 2 * index + 1] = unit >> 8;
    }
    return step * length;
  }

  override indexOf(wanted: number | string, start = 0): number {
    if (typeof wanted === "number") return super.indexOf(wanted, start);
    const [first = 0, ...others] = encodeText(wanted);
    for (let at = super.indexOf(first, start); at !== -1; at = super.indexOf(first, at + 1)) {
      if (others.every((byte, index) => this[at + 1 + index] === byte)) return at;
    }
    return -1;
  }

  readUInt8(at: number): number {
    return this[at]!;
  }

  readUInt16BE(at: number): number {
    return (this[at]! << 8) | this[at + 1]!;
  }

  readUInt32BE(at: number): number {
    return ((this.readUInt16BE(at) << 16) | this.readUInt16BE(at + 2)) >>> 0;
  }

  readUIntLE(at: number, size: number): number {
    let value = 0;
    for (let index = size - 1; index >= 0; index--) value = value * 256 + this[at + index]!;
    return value;
  }

  readUInt16LE(at: number): number {
    return this.readUIntLE(at, 2);
  }

  readUInt32LE(at: number): number {
    return this.readUIntLE(at, 4);
  }

  swap16(): this {
    for (let at = 0; at + 1 < this.length; at += 2) [this[at], this[at + 1]] = [this[at + 1]!, this[at]!];
    return this;
  }
}

function countBytes(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) continue;
    bytes += unit < 0x800 ? 1 : 2;
    // A pair has four bytes for two units. Half of a pair alone becomes U+FFFD, which has three.
    if (unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) at++;
  }
  return bytes;
}

const utf8Encoder = new TextEncoder();
const utf8Decoder = new TextDecoder("utf-8", { ignoreBOM: true });

function encodeText(text: string, encoding: Encoding = "utf8"): PlainBuffer {
  if (encoding === "utf8") return new PlainBuffer(utf8Encoder.encode(text).buffer as ArrayBuffer);
  if (encoding === "base64" || encoding === "base64url") return decodeBase64(text);
  const bytes = new PlainBuffer(encoding === "utf16le" ? 2 * text.length : text.length);
  bytes.write(text, encoding);
  return bytes;
}

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const valueOfUnit: Uint8Array = new Uint8Array(128).fill(255);
for (let value = 0; value < 64; value++) valueOfUnit[digits.charCodeAt(value)] = value;
valueOfUnit[0x2d] = 62; // "-" and "_" of base64url
valueOfUnit[0x5f] = 63;

/** Reads both alphabets, skips other characters and stops at the padding, as Buffer does. */
function decodeBase64(text: string): PlainBuffer {
  const bytes = new PlainBuffer((text.length * 3) >> 2);
  let [used, bits, waiting] = [0, 0, 0];
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 0x3d) break;
    const value = valueOfUnit[unit] ?? 255;
    if (value === 255) continue;
    bits = (bits << 6) | value;
    waiting += 6;
    if (waiting < 8) continue;
    waiting -= 8;
    bytes[used++] = bits >> waiting;
  }
  return bytes.subarray(0, used) as PlainBuffer;
}

function encodeBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 3) {
    const [first, second, third] = [bytes[at]!, bytes[at + 1], bytes[at + 2]];
    const bits = (first << 16) | ((second ?? 0) << 8) | (third ?? 0);
    text += digits[bits >> 18]! + digits[(bits >> 12) & 63]!;
    text += second === undefined ? "==" : digits[(bits >> 6) & 63]! + (third === undefined ? "=" : digits[bits & 63]!);
  }
  return text;
}

// Below the class, which does not exist above it.
export const Buffer: typeof globalThis.Buffer = globalThis.Buffer ?? createPlainBuffer();
