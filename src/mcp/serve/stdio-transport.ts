import type { Writable } from "node:stream";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/server";
import { readLines, writeLine } from "../lines/line-stream.ts";
import { isObject, parseValues, type WrittenValue } from "../lines/rpc-message.ts";
import { readClientMessage, renderServerMessage } from "./client-message.ts";

export interface StdioStreams {
  readonly stdin: AsyncIterable<Buffer>;
  readonly stdout: Writable;
}

export interface StdioTransport extends Transport {
  /** The client has closed its end, and what it had asked for before is answered; or the connection was closed here. */
  readonly ended: Promise<void>;
}

/** How long answers are waited for when the client has closed its end. */
const mostDrainMs = 10_000;

/** The library's own transport drops what is under way at the end of stdin, so that `printf … | plimsoll mcp` would print nothing;
 *  and it gives up on a line above 10 MB. `isTaken`: whether the library takes a message for a request or a notification. */
export function createStdioTransport(
  { stdin, stdout }: StdioStreams,
  isTaken: (message: unknown) => boolean,
): StdioTransport {
  const waiting = createWaiting();
  let closed = false;
  let end: () => void = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const transport: StdioTransport = {
    ended,
    start: async () => void pump(),
    async send(message) {
      await writeLine(stdout, renderServerMessage(message));
      if (!("method" in message)) waiting.answered(message.id);
    },
    async close() {
      if (closed) return;
      closed = true;
      waiting.giveUp();
      transport.onclose?.();
      end();
    },
  };
  const fail = (error: Error): void => {
    // Once the connection is closed, the streams are taken away from under it.
    if (!closed) transport.onerror?.(error);
  };
  const take = (written: WrittenValue): void => {
    const read = readClientMessage(written, isTaken);
    if ("message" in read) {
      waiting.asked(read.message);
      transport.onmessage?.(read.message);
      return;
    }
    fail(new Error(read.refused));
    if (read.answer !== undefined) void writeLine(stdout, read.answer);
  };
  const takeLine = (line: Buffer): void => {
    const parsed = parseValues(line);
    // Several messages in one line are allowed by revision 2025-03-26; each is answered by itself.
    if (parsed !== undefined) parsed.values.forEach(take);
    else if (line.toString("utf8").trim() !== "") fail(new Error("a line on stdin is no JSON"));
  };
  const pump = async (): Promise<void> => {
    try {
      for await (const line of readLines(stdin)) takeLine(line);
      await waiting.settled(mostDrainMs);
    } catch (error) {
      fail(error as Error);
    }
    await transport.close();
  };
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    // A client that reads no more is gone, also where its other end is still open.
    if (error.code !== "EPIPE") fail(error);
    void transport.close();
  });
  return transport;
}

interface Waiting {
  asked(message: JSONRPCMessage): void;
  answered(id: unknown): void;
  settled(mostMs: number): Promise<void>;
  /** Nobody is there any more who could be answered. */
  giveUp(): void;
}

/** Requests that have no answer yet. */
function createWaiting(): Waiting {
  const ids = new Set<unknown>();
  let settle: () => void = () => {};
  const answered = (id: unknown): void => {
    ids.delete(id);
    if (ids.size === 0) settle();
  };
  return {
    asked(message) {
      if (!("method" in message)) return;
      const { method, params } = message;
      // A subscription is answered when the connection ends, and a cancelled request never.
      if ("id" in message && method !== "subscriptions/listen") ids.add(message.id);
      if (method === "notifications/cancelled" && isObject(params)) answered(params.requestId);
    },
    answered,
    settled: (mostMs) =>
      new Promise((resolve) => {
        // It keeps the process alive: one with nothing left to do would end here, before its session is closed.
        const timer = setTimeout(() => settle(), mostMs);
        settle = () => {
          clearTimeout(timer);
          resolve();
        };
        if (ids.size === 0) settle();
      }),
    giveUp() {
      ids.clear();
      settle();
    },
  };
}
