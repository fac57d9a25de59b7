/** Bytes of texts, and base64. Node's Buffer does this several times faster than plain code, so it is used where it exists.
 *  Everything here also runs in a browser and in a Worker, with the same results. */

const NodeBuffer: typeof Buffer | undefined = globalThis.Buffer;

/** Returns the bytes of base64 or base64url. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  if (NodeBuffer === undefined) return decodePlainly(text);
  const bytes = NodeBuffer.from(text, "base64");
  return new Uint8Array(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length);
}

/** Returns the bytes as base64, with padding. */
export function encodeBase64(bytes: Uint8Array): string {
  if (NodeBuffer === undefined) return encodePlainly(bytes);
  return NodeBuffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
}

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Reads both alphabets and skips other characters, as Buffer does. Stops at the padding. */
function decodePlainly(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array((text.length * 3) >> 2);
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
  return bytes.subarray(0, used);
}

const valueOfUnit: Uint8Array = new Uint8Array(128).fill(255);
for (let value = 0; value < 64; value++) valueOfUnit[digits.charCodeAt(value)] = value;
valueOfUnit["-".charCodeAt(0)] = 62;
valueOfUnit["_".charCodeAt(0)] = 63;

function encodePlainly(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 3) {
    const [first, second, third] = [bytes[at]!, bytes[at + 1], bytes[at + 2]];
    const bits = (first << 16) | ((second ?? 0) << 8) | (third ?? 0);
    text += digits[bits >> 18]! + digits[(bits >> 12) & 63]!;
    text += second === undefined ? "==" : digits[(bits >> 6) & 63]! + (third === undefined ? "=" : digits[bits & 63]!);
  }
  return text;
}
