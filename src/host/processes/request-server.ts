/** Programs in other languages talk to a request server: a line of JSON for each message on stdio, or HTTP. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Writable } from "node:stream";
import { formatError, type RequestServer } from "../../conversation/sdk/serve-requests.ts";
import { ContextError } from "../../core/errors.ts";
import { type Fields, formatNumber } from "../../core/text/index.ts";
import { createRequestGuard, limitBody, listenOnLoopback, loopback, type RequestRefusal } from "./loopback-server.ts";

/** A request with a history of a million tokens has a few megabytes, images more. */
const maxMessageBytes = 64 << 20;
/** Messages that are answered at the same time. Those of one conversation wait for each other. */
const maxPending = 32;

/** Answers each line of the input with a line. Ends with the input, when the last answer is written, or when nobody reads
 *  the output any more. Answers may overtake each other, so a program gives its messages ids. */
export async function serveLines(
  server: RequestServer,
  streams: {
    readonly input: AsyncIterable<Buffer>;
    readonly output: Writable;
    readonly signal: AbortSignal;
    /** Ends the input. Called when the signal comes, or when nobody reads the output any more. */
    stop(): void;
  },
): Promise<void> {
  const { input, output } = streams;
  const pending = new Set<Promise<void>>();
  let isGone = false;
  const stop = (): void => {
    isGone = true;
    streams.stop();
  };
  streams.signal.addEventListener("abort", stop);
  output.once("close", stop);
  output.on("error", stop);
  // Resolves when the reader has taken the answer, so a slow reader slows the server down.
  const write = (answer: Fields): Promise<void> =>
    new Promise((resolve) => output.write(`${encode(answer).text}\n`, () => resolve()));
  try {
    for await (const line of readLines(input)) {
      const answering = answerLine(server, line).then(write);
      const settled = answering.finally(() => pending.delete(settled));
      pending.add(settled);
      if (pending.size >= maxPending) await Promise.race(pending);
    }
  } catch (error) {
    // An input that is ended from here ends too early.
    if (!isGone) throw error;
  }
  await Promise.all(pending);
}

/** JSON that is nested 100,000 deep can be read, but not written. It must not end the server. */
function encode(answer: Fields): { readonly text: string; readonly isWhole: boolean } {
  try {
    return { text: JSON.stringify(answer), isWhole: true };
  } catch (error) {
    return { text: JSON.stringify({ error: formatError(error) }), isWhole: false };
  }
}

async function answerLine(server: RequestServer, line: Buffer | undefined): Promise<Fields> {
  if (line === undefined) {
    const message = `a line has more than ${formatNumber(maxMessageBytes)} bytes`;
    return { error: formatError(new ContextError("unreadable_input", message, { hint: "It was not read." })) };
  }
  const read = parseMessage(line.toString());
  return "message" in read ? server.answer(read.message) : { error: formatError(read.error) };
}

function parseMessage(text: string): { readonly message: unknown } | { readonly error: ContextError } {
  try {
    return { message: JSON.parse(text) };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : "";
    return {
      error: new ContextError("unreadable_input", `the message is no JSON: ${reason}`, {
        hint: "Write one JSON object on each line.",
        cause,
      }),
    };
  }
}

/** Yields the lines that are not empty, and undefined for one that is too long to keep. */
async function* readLines(input: AsyncIterable<Buffer>): AsyncGenerator<Buffer | undefined> {
  let parts: Buffer[] = [];
  let length = 0;
  const take = (): Buffer | undefined => {
    const line = length > maxMessageBytes ? undefined : Buffer.concat(parts);
    [parts, length] = [[], 0];
    return line;
  };
  const add = (part: Buffer): void => {
    length += part.length;
    if (length <= maxMessageBytes) parts.push(part);
    else parts = [];
  };
  for await (const chunk of input) {
    let start = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
      add(chunk.subarray(start, end));
      start = end + 1;
      const line = take();
      if (line === undefined || line.toString().trim() !== "") yield line;
    }
    if (start < chunk.length) add(chunk.subarray(start));
  }
  const last = take();
  if (last === undefined || last.toString().trim() !== "") yield last;
}

/** Serves programs of this machine over HTTP until the signal comes. */
export async function serveRequests(
  server: RequestServer,
  options: {
    readonly port: number;
    readonly token: string | undefined;
    readonly signal: AbortSignal;
    log(text: string): void;
  },
): Promise<void> {
  const { port, token, signal, log } = options;
  const refuse = createRequestGuard({ token, maxBodyBytes: maxMessageBytes });
  const http = createServer((request, response) => {
    void answerHttp(server, request, refuse(request)).then(
      ({ status, body }) => send(response, status, body),
      // The client is gone, or was refused while it sent.
      () => response.destroy(),
    );
  });
  log(`serving on http://${loopback}:${await listenOnLoopback(http, port)}`);
  if (!signal.aborted) await once(signal, "abort");
  http.close();
  http.closeAllConnections();
}

interface HttpAnswer {
  readonly status: number;
  readonly body: Fields;
}

async function answerHttp(
  server: RequestServer,
  request: IncomingMessage,
  refusal: RequestRefusal | undefined,
): Promise<HttpAnswer> {
  const path = request.url?.split("?")[0] ?? "/";
  // Gateways look whether the server is there, without a token.
  if (path === "/health" && refusal?.status !== 403) return { status: 200, body: { status: "ok" } };
  if (refusal !== undefined) return refuseWith(refusal);
  const answer = paths[path];
  if (answer === undefined) {
    return refuseWith({ status: 404, message: "Send a POST to /v1/calls or /v1/compress." });
  }
  if (request.method !== "POST") return refuseWith({ status: 405, message: `${path} takes a POST.` });
  const body = await readBody(request);
  if (!Buffer.isBuffer(body)) return refuseWith(body);
  const read = parseMessage(body.toString());
  return "message" in read ? answer(server, read.message) : failWith(read.error);
}

const paths: Readonly<Record<string, (server: RequestServer, message: unknown) => Promise<HttpAnswer>>> = {
  async "/v1/calls"(server, message) {
    const body = await server.answer(message);
    return { status: "error" in body ? 400 : 200, body };
  },
  async "/v1/compress"(server, message) {
    try {
      return { status: 200, body: await server.compress(message) };
    } catch (error) {
      return failWith(error);
    }
  },
};

async function readBody(request: IncomingMessage): Promise<Buffer | RequestRefusal> {
  const parts: Buffer[] = [];
  let refusal: RequestRefusal | undefined;
  const stop = (found: RequestRefusal): void => {
    refusal = found;
  };
  try {
    for await (const part of limitBody(request, maxMessageBytes, stop)) parts.push(part);
  } catch (error) {
    if (refusal === undefined) throw error;
    return refusal;
  }
  return Buffer.concat(parts);
}

function failWith(error: unknown): HttpAnswer {
  return { status: error instanceof ContextError ? 400 : 500, body: { error: formatError(error) } };
}

function refuseWith({ status, message }: { readonly status: number; readonly message: string }): HttpAnswer {
  return { status, body: { error: { code: "refused", message, hint: null } } };
}

function send(response: ServerResponse, status: number, body: Fields): void {
  const headers = { "content-type": "application/json", ...(status === 401 && { "www-authenticate": "Bearer" }) };
  const { text, isWhole } = encode(body);
  response.writeHead(isWhole ? status : 500, headers).end(text);
}
