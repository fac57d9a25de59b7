import type { Writable } from "node:stream";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/server";
import { readLines, writeLine } from "../lines/line-stream.ts";
import { idKey, isObject, type RpcObject } from "../lines/rpc-message.ts";

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
 *  and it gives up on a line above 10 MB. */
export function createStdioTransport({ stdin, stdout }: StdioStreams): StdioTransport {
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
      await writeLine(stdout, `${JSON.stringify(message)}\n`);
      if (!("method" in message)) waiting.answered(message.id);
    },
    async close() {
      if (closed) return;
      closed = true;
      transport.onclose?.();
      end();
    },
  };
  const take = (message: unknown): void => {
    if (!isObject(message)) return;
    waiting.asked(message);
    transport.onmessage?.(message as unknown as JSONRPCMessage);
  };
  const takeLine = (line: Buffer): void => {
    const value = parse(line);
    // Several messages in one line are allowed by revision 2025-03-26; each is answered by itself.
    if (value !== undefined) for (const message of Array.isArray(value) ? value : [value]) take(message);
    else if (line.toString("utf8").trim() !== "")
      transport.onerror?.(new Error("a line on stdin is no JSON"));
  };
  const pump = async (): Promise<void> => {
    try {
      for await (const line of readLines(stdin)) takeLine(line);
      await waiting.settled(mostDrainMs);
    } catch (error) {
      // Once the connection is closed, stdin is taken away from under the loop.
      if (!closed) transport.onerror?.(error as Error);
    }
    await transport.close();
  };
  return transport;
}

function parse(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString("utf8"));
  } catch {
    return undefined;
  }
}

interface Waiting {
  asked(message: RpcObject): void;
  answered(id: unknown): void;
  settled(mostMs: number): Promise<void>;
}

/** Requests that have no answer yet. */
function createWaiting(): Waiting {
  const ids = new Set<string>();
  let settle: () => void = () => {};
  const answered = (id: unknown): void => {
    ids.delete(idKey(id));
    if (ids.size === 0) settle();
  };
  return {
    asked({ id, method, params }) {
      // A subscription is answered when the connection ends, and a cancelled request never.
      if (id !== undefined && typeof method === "string" && method !== "subscriptions/listen")
        ids.add(idKey(id));
      if (method === "notifications/cancelled" && isObject(params)) answered(params.requestId);
    },
    answered,
    settled: (mostMs) =>
      new Promise((resolve) => {
        settle = resolve;
        if (ids.size === 0) resolve();
        else setTimeout(resolve, mostMs).unref();
      }),
  };
}
