/** Names of files whose bytes are not UTF-8. Each such byte is one lone surrogate (U+DC80 to U+DCFF), which no decoded text holds: names
 *  sort, match and compare as strings, nothing is lost, and two of them never become one. */
import { isUtf8 } from "node:buffer";
import { decodeBytes } from "../../workspace/index.ts";

/** The name that a byte string stands for. */
export function nameOfBytes(bytes: string): string {
  const text = decodeBytes(bytes);
  return text.includes("\uFFFD") ? decodeParts(Buffer.from(bytes, "latin1")) : text;
}

/** No call can name such a file: text that a model sends has no place for these bytes. */
export function isByteName(name: string): boolean {
  return /(?<![\ud800-\udbff])[\udc80-\udcff]/.test(name);
}

/** What the disk knows the file by. */
export function diskName(name: string): string | Buffer {
  if (!isByteName(name)) return name;
  const parts = name.split(/(?<![\ud800-\udbff])([\udc80-\udcff])/);
  return Buffer.concat(
    parts.map((part, index) =>
      index % 2 === 0 ? Buffer.from(part) : Buffer.from([part.charCodeAt(0) - 0xdc00]),
    ),
  );
}

/** What a person or a model sees. */
export function shownName(name: string): string {
  return name.replace(/(?<![\ud800-\udbff])[\udc80-\udcff]/g, "\uFFFD");
}

/** Undefined where every name is text. */
export function byteNamesWarning(count: number): string | undefined {
  if (count === 0) return undefined;
  const files = count === 1 ? "1 file here has a name that is" : `${count} files here have names that are`;
  return `${files} not UTF-8, shown with U+FFFD: no call can name such a file.`;
}

const mostBytes = 4;

function decodeParts(bytes: Buffer): string {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const length = characterLength(bytes, at);
    text +=
      length === 0 ? String.fromCharCode(0xdc00 + (bytes[at] ?? 0)) : bytes.toString("utf8", at, at + length);
    at += Math.max(length, 1);
  }
  return text;
}

/** Bytes of the character that begins here; 0 where none does. */
function characterLength(bytes: Buffer, at: number): number {
  for (let length = 1; length <= Math.min(mostBytes, bytes.length - at); length++) {
    if (isUtf8(bytes.subarray(at, at + length))) return length;
  }
  return 0;
}
