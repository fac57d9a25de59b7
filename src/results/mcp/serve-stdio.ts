import type { Writable } from "node:stream";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/server";
import { isPlainObject } from "../../core/text/index.ts";
import { createHost, type HostOptions } from "./create-host.ts";
import { readMessageLines, writeLine } from "./line-stream.ts";
import { idText, parseLine, type RpcMessage, type RpcObject, refuseLongLine, renderAnswer } from "./rpc-message.ts";

/** Serves one client, from revision 2024-10-07 of the protocol on, until it closes its end or the signal comes. */
export async function serveStdio(options: HostOptions, streams: StdioStreams): Promise<void> {
  const { signal, log } = options;
  const host = await createHost(options);
  const { isJSONRPCNotification, isJSONRPCRequest } = await import("@modelcontextprotocol/server");
  const { serveStdio: serve } = await import("@modelcontextprotocol/server/stdio");
  const transport = createStdioTransport(
    streams,
    (message) => isJSONRPCRequest(message) || isJSONRPCNotification(message),
  );
  const connection = serve(host.factory, { transport, onerror: ({ message }) => log(message) });
  const close = (): void => void connection.close();
  if (signal.aborted) close();
  signal.addEventListener("abort", close, { once: true });
  await transport.ended;
  await connection.close();
  await host.close();
}

/** Converts what a client sends into messages that the library accepts. The library silently drops messages that
 *  deviate a little from the protocol, and the client would wait forever. */
export type ClientMessage =
  | { readonly message: JSONRPCMessage }
  /** `answer` is the line that reports the problem to the client. */
  | { readonly refused: string; readonly answer?: string | undefined };

/** `isTaken` says whether the library accepts it as a request or a notification. */
export function readClientMessage(written: RpcMessage, isTaken: (message: unknown) => boolean): ClientMessage {
  const { value } = written;
  if (!isPlainObject(value)) return { refused: "a message on stdin is not an object" };
  // Some serializers write null for missing values.
  const withoutNulls = Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null));
  const message = shortenIds(withoutNulls, written);
  // Only the library reads answers to the server's own requests.
  if (!("method" in message) || isTaken(message)) return { message: message as unknown as JSONRPCMessage };
  const refused = "a message on stdin is not JSON-RPC 2.0";
  if (message.id === undefined) return { refused };
  const problem =
    'Invalid Request: it needs jsonrpc "2.0", a method, an id that is a text or a number, an object as params if any, and nothing else.';
  const error = { code: -32_600, message: problem };
  return { refused, answer: renderAnswer(written.id ?? "null", { error }) };
}

/** Returns the line for a message of the server, with the client's original ids. */
export function renderServerMessage(message: JSONRPCMessage): string {
  const id = "id" in message && typeof message.id === "string" ? message.id : "";
  if (!id.startsWith(longIdPrefix) || "method" in message) return `${JSON.stringify(message)}\n`;
  const answer = "result" in message ? { result: message.result } : { error: message.error };
  return renderAnswer(id.slice(longIdPrefix.length), answer);
}

/** A prefix that no client's own id has. */
const longIdPrefix = "\u0000number ";

/** The library accepts texts and whole numbers up to 2 ** 53. Another number, such as a time in nanoseconds, becomes a
 *  text. */
function shortenIds(message: RpcObject, written: RpcMessage): RpcObject {
  const { id, params } = message;
  const short = isLong(id) ? { ...message, id: longIdPrefix + written.id } : message;
  if (!isPlainObject(params) || !isLong(params.requestId)) return short;
  return { ...short, params: { ...params, requestId: longIdPrefix + idText(written, "params", "requestId") } };
}

function isLong(id: unknown): boolean {
  return typeof id === "number" && !Number.isSafeInteger(id);
}

interface StdioStreams {
  readonly stdin: AsyncIterable<Buffer>;
  readonly stdout: Writable;
}

interface StdioTransport extends Transport {
  /** Resolves when the client has closed its end and everything was answered, or when the connection was closed
   *  here. */
  readonly ended: Promise<void>;
}

/** The library's own transport drops running calls at the end of stdin, so `printf … | plimsoll mcp` would print
 *  nothing. It also gives up on a line above 10 MB. `isTaken` says whether the library accepts a message as a request
 *  or a notification. */
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
    // After the connection is closed, its streams are destroyed.
    if (!closed) transport.onerror?.(error);
  };
  const take = (message: RpcMessage): void => {
    const read = readClientMessage(message, isTaken);
    if ("message" in read) {
      waiting.asked(read.message);
      transport.onmessage?.(read.message);
      return;
    }
    fail(new Error(read.refused));
    if (read.answer !== undefined) void writeLine(stdout, read.answer);
  };
  const takeLine = (line: Buffer): void => {
    const parsed = parseLine(line);
    // Revision 2025-03-26 allows several messages in one line. Each is answered separately.
    if (parsed !== undefined) parsed.messages.forEach(take);
    else if (line.toString("utf8").trim() !== "") fail(new Error("a line on stdin is not JSON"));
  };
  const pump = async (): Promise<void> => {
    try {
      const replace = refuseLongLine(stdout, (problem) => fail(new Error(problem)));
      for await (const line of readMessageLines(stdin, { replace })) takeLine(line);
      // How long to wait for answers after the client has closed its end.
      const maxDrainMs = 10_000;
      await waiting.settled(maxDrainMs);
    } catch (error) {
      fail(error as Error);
    }
    await transport.close();
  };
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    // A client that no longer reads is gone, even if its other end is still open.
    if (error.code !== "EPIPE") fail(error);
    void transport.close();
  });
  return transport;
}

/** Requests without an answer. */
function createWaiting() {
  const ids = new Set<unknown>();
  let settle: () => void = () => {};
  const answered = (id: unknown): void => {
    ids.delete(id);
    if (ids.size === 0) settle();
  };
  return {
    asked(message: JSONRPCMessage): void {
      if (!("method" in message)) return;
      const { method, params } = message;
      // A subscription is answered when the connection ends, a cancelled request never.
      if ("id" in message && method !== "subscriptions/listen") ids.add(message.id);
      if (method === "notifications/cancelled" && isPlainObject(params)) answered(params.requestId);
    },
    answered,
    settled: (maxMs: number): Promise<void> =>
      new Promise((resolve) => {
        // Keeps the process alive. Otherwise it would end here, before its session is closed.
        const timer = setTimeout(() => settle(), maxMs);
        settle = () => {
          clearTimeout(timer);
          resolve();
        };
        if (ids.size === 0) settle();
      }),
    /** Nobody is left to answer. */
    giveUp(): void {
      ids.clear();
      settle();
    },
  };
}
