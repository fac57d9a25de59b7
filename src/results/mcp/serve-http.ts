import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import {
  createRequestGuard,
  limitBody,
  listenOnLoopback,
  loopback,
  type RequestRefusal,
} from "../../host/processes/loopback-server.ts";
import { createHost, type HostOptions } from "./create-host.ts";
import {
  clientInSession,
  createHttpRoots,
  createHttpSession,
  type HttpRoots,
  rootsOfRequest,
  sessionHeader,
} from "./http-clients.ts";
import { parseLine } from "./rpc-message.ts";

const path = "/mcp";

/** Serves HTTP clients of this machine until the signal comes. Each client has its own session, identified by the id
 *  from initialize. Clients without an id share a session, because nothing else in a request identifies a
 *  conversation. */
export async function serveHttp(
  options: HostOptions,
  access: {
    readonly port: number;
    /** The token that each request must have as `Authorization: Bearer …`. Undefined if none is needed. */
    readonly token: string | undefined;
  },
): Promise<void> {
  const { port, token } = access;
  const { signal, log } = options;
  const host = await createHost(options);
  const library = await import("@modelcontextprotocol/server");
  const handler = library.createMcpHandler(host.factory, { onerror: ({ message }) => log(message) });
  const answering: AnswerOptions = {
    refuse: createRequestGuard({ token, maxBodyBytes }),
    // A client announces its end with DELETE. The library serves every request separately and has no sessions.
    handle: async (request) => {
      const client = clientInSession(request.headers.get(sessionHeader));
      if (request.method !== "DELETE" || client === undefined) return handler.fetch(request);
      await host.closeClient(client.id);
      return new Response(null, { status: 204 });
    },
    roots: options.asksRoots ? createHttpRoots() : undefined,
  };
  const server = createServer((request, response) => {
    void answer(request, response, answering).catch((error: Error) => {
      log(error.message);
      response.destroy();
    });
  });
  log(`serving on http://${loopback}:${await listenOnLoopback(server, port)}${path}`);
  if (!signal.aborted) await once(signal, "abort");
  await handler.close();
  server.close();
  server.closeAllConnections();
  await host.close();
}

interface AnswerOptions {
  handle(request: Request): Promise<Response>;
  /** Absent if the roots of clients are not used. */
  readonly roots: HttpRoots | undefined;
  refuse(request: IncomingMessage): RequestRefusal | undefined;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { refuse, handle, roots }: AnswerOptions,
): Promise<void> {
  const refusal = refuse(request);
  if (refusal !== undefined) return sendRefusal(response, refusal);
  const url = parseUrl(request);
  if (url?.pathname !== path) return sendRefusal(response, { status: 404, message: `The server is at ${path}.` });
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const client = clientInSession([request.headers[sessionHeader]].flat()[0]);
  const isLookedAt = mayInitialize(request) || (roots !== undefined && client?.offersRoots === true);
  const whole = limitBody(request, maxBodyBytes, (each) => sendRefusal(response, each));
  const body = isLookedAt && request.method === "POST" ? await readFirst(whole) : whole;
  const first = Buffer.isBuffer(body) ? body : undefined;
  const ask = (): Promise<Response> => handle(toRequest(request, { url, signal: gone.signal, body }));
  if (client?.offersRoots && roots !== undefined) {
    return answerWithRoots(response, { ask, roots, clientId: client.id, body: first });
  }
  const answered = await ask();
  const session = first && client === undefined ? createHttpSession(first) : undefined;
  if (session !== undefined) answered.headers.set(sessionHeader, session);
  send(response, answered);
}

/** Calls of our tools have a few hundred bytes. */
const maxBodyBytes = 16 << 20;

/** An initialize has a few hundred bytes. */
const maxFirstBytes = 100_000;

/** Whether the request can be a client's first. Later requests name the session. Some clients name their revision in
 *  the first one too. */
export function mayInitialize({ method, headers }: IncomingMessage): boolean {
  const bytes = Number(headers["content-length"] ?? 0);
  return method === "POST" && !(sessionHeader in headers) && bytes <= maxFirstBytes;
}

/** Returns the body of such a request: complete, or as a stream if it cannot be an initialize. */
export async function readFirst(request: AsyncIterable<Buffer>): Promise<Buffer | AsyncIterable<Buffer>> {
  const rest = request[Symbol.asyncIterator]();
  const read: Buffer[] = [];
  for (let bytes = 0; bytes <= maxFirstBytes; bytes += read.at(-1)!.length) {
    const { done, value } = await rest.next();
    if (done) return Buffer.concat(read);
    read.push(value);
  }
  return (async function* () {
    yield* read;
    yield* { [Symbol.asyncIterator]: () => rest };
  })();
}

function send(response: ServerResponse, { status, headers, body }: Response): void {
  // The request was refused while its body was read.
  if (response.writableEnded) return;
  if (!response.headersSent) response.writeHead(status, Object.fromEntries(headers));
  if (body === null) response.end();
  else
    Readable.fromWeb(body as ReadableStream)
      .on("error", () => response.destroy())
      .pipe(response);
}

/** Answers a client that offers roots. Before its first tool call, the client is asked for them. */
async function answerWithRoots(
  response: ServerResponse,
  exchange: {
    readonly roots: HttpRoots;
    readonly clientId: string;
    /** Absent if it is too large for a call that has to be inspected. */
    readonly body: Buffer | undefined;
    ask(): Promise<Response>;
  },
): Promise<void> {
  const { roots, clientId, body, ask } = exchange;
  const messages = (body && parseLine(body)?.messages) ?? [];
  if (messages.length > 0 && messages.every((message) => roots.take(clientId, message))) {
    response.writeHead(202).end();
    return;
  }
  if (messages.some(({ method }) => method === "notifications/roots/list_changed")) roots.forget(clientId);
  const known = roots.find(clientId);
  const needsRoots = known === undefined && messages.some(({ method }) => method === "tools/call");
  if (!needsRoots) return send(response, await rootsOfRequest.run(known, ask));
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  const sent = await roots.ask(clientId, (event) => response.write(event));
  const answered = await rootsOfRequest.run(sent, ask);
  const isStream = answered.headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (isStream) return send(response, answered);
  const text = (await answered.text()).trim();
  response.end(text === "" ? "" : `event: message\ndata: ${text}\n\n`);
}

/** Returns undefined if the request has no path, such as the * of OPTIONS. A path may begin with //, which alone would
 *  be a host. */
function parseUrl({ url = "/" }: IncomingMessage): URL | undefined {
  const text = url.startsWith("/") ? `http://${loopback}${url}` : url;
  return URL.canParse(text) ? new URL(text) : undefined;
}

function sendRefusal(
  response: ServerResponse,
  { status, message }: { readonly status: number; readonly message: string },
): void {
  if (status === 401) response.setHeader("www-authenticate", "Bearer");
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32_000, message } }));
}

function toRequest(
  request: IncomingMessage,
  parts: {
    readonly url: URL;
    readonly signal: AbortSignal;
    readonly body: Buffer | AsyncIterable<Buffer>;
  },
): Request {
  const { url, signal, body } = parts;
  const { method = "GET" } = request;
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) headers.set(name, [value].flat().join(", "));
  if (method === "GET" || method === "HEAD") return new Request(url, { method, headers, signal });
  const sent = Buffer.isBuffer(body) ? body : Readable.toWeb(Readable.from(body));
  return new Request(url, { method, headers, signal, body: sent, duplex: "half" } as unknown as RequestInit);
}
