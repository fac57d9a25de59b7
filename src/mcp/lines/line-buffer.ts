/** A line that has begun. A large one grows in place: parts that are joined at the end, and what they are joined to, would be in memory
 *  at the same time. */
import { isUtf8 } from "node:buffer";

export interface LineBuffer {
  add(bytes: Buffer): void;
  /** All that was added; then it is empty. */
  take(): Buffer;
}

export interface LineLimits {
  /** Up to here parts are joined. */
  readonly largeBytes: number;
  /** And from here on again. */
  readonly mostBytes: number;
}

/** No text is longer than 2 ** 29 − 24 in Node, and a line that is no text is passed on as it came. */
const usualLimits: LineLimits = { largeBytes: 4_194_304, mostBytes: 2 ** 29 };

export function createLineBuffer({ largeBytes, mostBytes }: LineLimits = usualLimits): LineBuffer {
  let parts: Buffer[] = [];
  let length = 0;
  let grown: GrowingBytes | undefined;
  const grow = (): void => {
    grown ??= reserve(mostBytes);
    for (const part of parts) grown?.add(part);
    if (grown !== undefined) parts = [];
  };
  return {
    add(bytes) {
      length += bytes.length;
      parts.push(bytes);
      if (length <= largeBytes) return;
      if (length > mostBytes && grown !== undefined) {
        parts = [grown.line(), bytes];
        grown = undefined;
      } else if (length <= mostBytes) grow();
    },
    take() {
      const line = grown?.line() ?? (parts.length === 1 ? parts[0]! : Buffer.concat(parts));
      [parts, length, grown] = [[], 0, undefined];
      return line;
    },
  };
}

/** Gives back the memory of a large line whose text is the same bytes again, and tells whether it did. */
export function releaseLine(line: Buffer): boolean {
  const bytes = line.buffer as Partial<ResizableBuffer>;
  if (bytes.resizable !== true || !isUtf8(line)) return false;
  bytes.resize?.(0);
  return true;
}

const step = 1_048_576;

interface ResizableBuffer extends ArrayBuffer {
  readonly resizable: boolean;
  resize(length: number): void;
}

/** Of ES2024, which Node has had since version 20. */
const ResizableBuffer = ArrayBuffer as unknown as new (
  length: number,
  options: { maxByteLength: number },
) => ResizableBuffer;

interface GrowingBytes {
  add(bytes: Buffer): void;
  line(): Buffer;
}

/** Addresses are set aside, memory is not. Undefined where not even those can be had. */
function reserve(mostBytes: number): GrowingBytes | undefined {
  let bytes: ResizableBuffer;
  try {
    bytes = new ResizableBuffer(0, { maxByteLength: mostBytes });
  } catch {
    return undefined;
  }
  let length = 0;
  return {
    add(part) {
      const needed = length + part.length;
      if (needed > bytes.byteLength) bytes.resize(Math.min(mostBytes, needed + step));
      new Uint8Array(bytes, length, part.length).set(part);
      length = needed;
    },
    line: () => Buffer.from(bytes, 0, length),
  };
}
