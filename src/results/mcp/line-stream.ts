/** Messages over stdio are lines. A line keeps its bytes, including the line break, so that it can be passed on
 *  unchanged. */

import { isUtf8 } from "node:buffer";
import type { Writable } from "node:stream";
import { ContextError } from "../../core/errors.ts";
import { formatNumber } from "../../core/text/index.ts";

/** A longer line is not read. Parsing a line takes four times its size. */
export const maxLineBytes: number = 128 << 20;

/** What is kept of a line that is too long: enough to find its id. */
export interface LineEnds {
  readonly head: string;
  readonly tail: string;
}

/** Yields the lines of a stream. The last line may have no line break. Throws if a line is twice as long as the longest
 *  one that is read: nobody knows whether it ever ends. */
export async function* readMessageLines(
  source: AsyncIterable<Buffer>,
  options: {
    /** Called with a line that is too long. Returns what is read in its place, if anything. */
    replace(ends: LineEnds): string | undefined;
    readonly maxBytes?: number | undefined;
  },
): AsyncGenerator<Buffer> {
  const { replace, maxBytes = maxLineBytes } = options;
  const begun = createLimitedBuffer(maxBytes);
  const take = (): Buffer | undefined => {
    const line = begun.take();
    if (Buffer.isBuffer(line)) return line;
    const other = replace(line);
    return other === undefined ? undefined : Buffer.from(other);
  };
  let isBegun = false;
  for await (const chunk of source) {
    let start = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
      begun.add(chunk.subarray(start, end + 1));
      const line = take();
      if (line !== undefined) yield line;
      isBegun = false;
      start = end + 1;
    }
    if (start === chunk.length) continue;
    begun.add(chunk.subarray(start));
    isBegun = true;
  }
  const last = isBegun ? take() : undefined;
  if (last !== undefined) yield last;
}

const endBytes = 4_096;

/** Of a line above the limit, only the ends are kept. */
function createLimitedBuffer(maxBytes: number): { add(bytes: Buffer): void; take(): Buffer | LineEnds } {
  const whole = createLineBuffer();
  let length = 0;
  let ends: { head: Buffer; tail: Buffer } | undefined;
  return {
    add(bytes) {
      length += bytes.length;
      if (length > 2 * maxBytes) {
        throw new ContextError("unreadable_input", `a line has more than ${formatNumber(2 * maxBytes)} bytes`);
      }
      if (ends !== undefined) {
        // A copy, because a view would keep all of the memory.
        ends.tail = Buffer.from(Buffer.concat([ends.tail, bytes.subarray(-endBytes)]).subarray(-endBytes));
        return;
      }
      whole.add(bytes);
      if (length <= maxBytes) return;
      const line = whole.take();
      ends = { head: Buffer.from(line.subarray(0, endBytes)), tail: Buffer.from(line.subarray(-endBytes)) };
      freeLine(line);
    },
    take() {
      const found = ends && { head: String(ends.head), tail: String(ends.tail) };
      [length, ends] = [0, undefined];
      return found ?? whole.take();
    },
  };
}

function freeLine(line: Buffer): void {
  const bytes = line.buffer as Partial<ResizableBuffer>;
  if (bytes.resizable === true) bytes.resize?.(0);
}

/** Resolves when the stream has taken the bytes, so a slow reader slows the writer down. A reader that is gone is not
 *  an error here: the caller notices its end elsewhere. */
export function writeLine(stream: Writable, line: string | Buffer): Promise<void> {
  if (stream.destroyed || stream.writableEnded) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off("close", done);
      resolve();
    };
    stream.once("close", done);
    stream.write(line, done);
  });
}

/** Lines from several sources for one reader. */
export function createLineChannel(): {
  readonly lines: AsyncIterable<Buffer>;
  /** Resolves when the reader has taken the line, so a slow reader slows the sources down. */
  push(line: string | Buffer): Promise<void>;
  end(): void;
} {
  const waiting: { readonly line: Buffer; readonly taken: () => void }[] = [];
  let isEnded = false;
  let wake: () => void = () => {};
  async function* read(): AsyncGenerator<Buffer> {
    for (;;) {
      const next = waiting.shift();
      if (next !== undefined) {
        next.taken();
        yield next.line;
      } else if (isEnded) return;
      else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  }
  return {
    lines: read(),
    push: (line) =>
      new Promise((taken) => {
        if (isEnded) return taken();
        waiting.push({ line: typeof line === "string" ? Buffer.from(line) : line, taken });
        wake();
      }),
    end() {
      isEnded = true;
      wake();
    },
  };
}

/** A line that is being received. A large one grows in place: joining its parts at the end would need the memory twice. A
 *  string in Node has at most 2 ** 29 − 24 characters. A longer line is passed on unchanged. */
export function createLineBuffer(
  limits: {
    /** Up to this size, parts are joined. */
    readonly largeBytes: number;
    /** From this size on, they are joined again. */
    readonly maxBytes: number;
  } = { largeBytes: 4_194_304, maxBytes: 2 ** 29 },
): {
  add(bytes: Buffer): void;
  /** Returns everything that was added, and clears it. */
  take(): Buffer;
} {
  const { largeBytes, maxBytes } = limits;
  let parts: Buffer[] = [];
  let length = 0;
  let grown: ReturnType<typeof reserve>;
  const grow = (): void => {
    grown ??= reserve(maxBytes);
    for (const part of parts) grown?.add(part);
    if (grown !== undefined) parts = [];
  };
  return {
    add(bytes) {
      length += bytes.length;
      parts.push(bytes);
      if (length <= largeBytes) return;
      if (length > maxBytes && grown !== undefined) {
        parts = [grown.line(), bytes];
        grown = undefined;
      } else if (length <= maxBytes) grow();
    },
    take() {
      const line = grown?.line() ?? (parts.length === 1 ? parts[0]! : Buffer.concat(parts));
      [parts, length, grown] = [[], 0, undefined];
      return line;
    },
  };
}

/** Frees the memory of a large line whose text has the same bytes. Returns whether it did. */
export function releaseLine(line: Buffer): boolean {
  if ((line.buffer as Partial<ResizableBuffer>).resizable !== true || !isUtf8(line)) return false;
  freeLine(line);
  return true;
}

interface ResizableBuffer extends ArrayBuffer {
  readonly resizable: boolean;
  resize(length: number): void;
}

/** From ES2024. Node has it since version 20. */
const ResizableBuffer = ArrayBuffer as unknown as new (
  length: number,
  options: { maxByteLength: number },
) => ResizableBuffer;

/** Reserves addresses, not memory. Undefined if not even those are available. */
function reserve(maxBytes: number) {
  let bytes: ResizableBuffer;
  try {
    bytes = new ResizableBuffer(0, { maxByteLength: maxBytes });
  } catch {
    return undefined;
  }
  let length = 0;
  return {
    add(part: Buffer): void {
      const needed = length + part.length;
      if (needed > bytes.byteLength) bytes.resize(Math.min(maxBytes, needed + 1_048_576));
      new Uint8Array(bytes, length, part.length).set(part);
      length = needed;
    },
    line: (): Buffer => Buffer.from(bytes, 0, length),
  };
}
