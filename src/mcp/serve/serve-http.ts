import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import { ContextError } from "../../errors.ts";
import { parseLine } from "../lines/rpc-message.ts";
import { createHost, type Host, type HostOptions } from "./create-host.ts";
import { clientInSession, mayInitialize, readFirst, sessionHeader, sessionOf } from "./http-clients.ts";
import { createHttpRoots, type HttpRoots, rootsOfRequest } from "./http-roots.ts";

const address = "127.0.0.1";
const path = "/mcp";

type Handle = (request: Request) => Promise<Response>;

export interface HttpOptions {
  readonly port: number;
  /** What each request must bring as `Authorization: Bearer …`. Undefined: nothing. */
  readonly token: string | undefined;
}

/** Serves the clients of this machine over HTTP until the signal comes. Each has a session of its own, told by the id that it was given
 *  at initialize; those without one share a session: nothing else in a request tells apart conversations. */
export async function serveHttp(options: HostOptions, { port, token }: HttpOptions): Promise<void> {
  const { signal, log } = options;
  const host = await createHost(options);
  const library = await import("@modelcontextprotocol/server");
  const handler = library.createMcpHandler(host.factory, { onerror: ({ message }) => log(message) });
  const names = library.localhostAllowedHostnames();
  // A page of another site, open in a browser of this machine, reaches this port as well: its Origin tells it, or after a DNS
  // rebinding its Host.
  const isLocal = ({ headers }: IncomingMessage): boolean =>
    library.validateHostHeader(headers.host, names).ok &&
    library.validateOriginHeader(headers.origin, library.localhostAllowedOrigins()).ok;
  const answering: AnswerOptions = {
    isLocal,
    mayAsk: tokenCheck(token),
    handle: takeEnds(handler.fetch, host),
    roots: options.asksRoots ? createHttpRoots() : undefined,
  };
  const server = createServer((request, response) => {
    void answer(request, response, answering).catch((error: Error) => {
      log(error.message);
      response.destroy();
    });
  });
  log(`serving on http://${address}:${await listen(server, port)}${path}`);
  if (!signal.aborted) await once(signal, "abort");
  await handler.close();
  server.close();
  server.closeAllConnections();
  await host.close();
}

/** Other users of this machine reach the port as well. The comparison takes as long whatever is wrong. */
function tokenCheck(token: string | undefined): (request: IncomingMessage) => boolean {
  if (token === undefined) return () => true;
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  const wanted = digest(token);
  return ({ headers }) => {
    const [, given = ""] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? "") ?? [];
    return timingSafeEqual(digest(given), wanted);
  };
}

/** A client that goes says so with DELETE: the library, which serves every request for itself, knows no sessions. */
function takeEnds(handle: Handle, { closeClient }: Host): Handle {
  return async (request) => {
    const client = clientInSession(request.headers.get(sessionHeader));
    if (request.method !== "DELETE" || client === undefined) return handle(request);
    await closeClient(client.id);
    return new Response(null, { status: 204 });
  };
}

async function listen(server: Server, port: number): Promise<number> {
  try {
    await once(server.listen(port, address), "listening");
    return (server.address() as AddressInfo).port;
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code === "EADDRINUSE" ? "it is in use" : String(cause);
    throw new ContextError("usage", `port ${port} cannot be listened on: ${reason}`, {
      hint: "Choose another one, or 0 for any that is free.",
      cause,
    });
  }
}

interface AnswerOptions {
  readonly handle: Handle;
  /** Absent where the roots of clients have no say. */
  readonly roots: HttpRoots | undefined;
  isLocal(request: IncomingMessage): boolean;
  mayAsk(request: IncomingMessage): boolean;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { isLocal, mayAsk, handle, roots }: AnswerOptions,
): Promise<void> {
  if (!isLocal(request)) return refuse(response, 403, "Requests are taken from this machine only.");
  if (!mayAsk(request)) {
    response.setHeader("www-authenticate", "Bearer");
    return refuse(response, 401, "The request needs the server's token: Authorization: Bearer TOKEN.");
  }
  const url = urlOf(request);
  if (url?.pathname !== path) return refuse(response, 404, `The server is at ${path}.`);
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const client = clientInSession([request.headers[sessionHeader]].flat()[0]);
  const isLookedAt = mayInitialize(request) || (roots !== undefined && client?.offersRoots === true);
  const body = isLookedAt && request.method === "POST" ? await readFirst(request) : request;
  const first = Buffer.isBuffer(body) ? body : undefined;
  const ask = (): Promise<Response> => handle(toRequest(request, { url, signal: gone.signal, body }));
  if (client?.offersRoots && roots !== undefined) {
    return answerWithRoots(response, { ask, roots, clientId: client.id, body: first });
  }
  const answered = await ask();
  const session = first && client === undefined ? sessionOf(first) : undefined;
  if (session !== undefined) answered.headers.set(sessionHeader, session);
  send(response, answered);
}

function send(response: ServerResponse, { status, headers, body }: Response): void {
  if (!response.headersSent) response.writeHead(status, Object.fromEntries(headers));
  if (body === null) response.end();
  else
    Readable.fromWeb(body as ReadableStream)
      .on("error", () => response.destroy())
      .pipe(response);
}

interface RootsExchange {
  readonly roots: HttpRoots;
  readonly clientId: string;
  /** Absent where it is too large for a call that needs to be looked at. */
  readonly body: Buffer | undefined;
  ask(): Promise<Response>;
}

/** Answers a client that offers roots. Before its first call of a tool it is asked for them. */
async function answerWithRoots(
  response: ServerResponse,
  { roots, clientId, body, ask }: RootsExchange,
): Promise<void> {
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
  const told = await roots.ask(clientId, (event) => response.write(event));
  const answered = await rootsOfRequest.run(told, ask);
  const isStream = answered.headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (isStream) return send(response, answered);
  const text = (await answered.text()).trim();
  response.end(text === "" ? "" : `event: message\ndata: ${text}\n\n`);
}

/** Undefined for what names no path, such as the * of OPTIONS. A path may begin with //, which alone would be a host. */
function urlOf({ url = "/" }: IncomingMessage): URL | undefined {
  const text = url.startsWith("/") ? `http://${address}${url}` : url;
  return URL.canParse(text) ? new URL(text) : undefined;
}

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32_000, message } }));
}

interface RequestParts {
  readonly url: URL;
  readonly signal: AbortSignal;
  readonly body: Buffer | AsyncIterable<Buffer>;
}

function toRequest(request: IncomingMessage, { url, signal, body }: RequestParts): Request {
  const { method = "GET" } = request;
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) headers.set(name, [value].flat().join(", "));
  if (method === "GET" || method === "HEAD") return new Request(url, { method, headers, signal });
  const sent = Buffer.isBuffer(body) ? body : Readable.toWeb(Readable.from(body));
  return new Request(url, { method, headers, signal, body: sent, duplex: "half" } as unknown as RequestInit);
}
