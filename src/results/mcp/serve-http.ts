import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { stat } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { parse } from "node:path";
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import { ContextError } from "../../core/errors.ts";
import { formatNumber } from "../../core/text/index.ts";
import { changeFile, type Environment, readTextFile } from "../../host/index.ts";
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

const address = "127.0.0.1";
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
  const names = library.localhostAllowedHostnames();
  // A page of another site, open in a browser of this machine, can reach this port too. Its Origin reveals it, or after
  // a DNS rebinding its Host.
  const isLocal = ({ headers }: IncomingMessage): boolean =>
    library.validateHostHeader(headers.host, names).ok &&
    library.validateOriginHeader(headers.origin, library.localhostAllowedOrigins()).ok;

  const answering: AnswerOptions = {
    isLocal,
    mayAsk: createTokenCheck(token),
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
  log(`serving on http://${address}:${await listen(server, port)}${path}`);
  if (!signal.aborted) await once(signal, "abort");
  await handler.close();
  server.close();
  server.closeAllConnections();
  await host.close();
}

/** Other users of this machine can reach the port too. The comparison always takes the same time. */
function createTokenCheck(token: string | undefined): (request: IncomingMessage) => boolean {
  if (token === undefined) return () => true;
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  const wanted = digest(token);
  return ({ headers }) => {
    const [, given = ""] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? "") ?? [];
    return timingSafeEqual(digest(given), wanted);
  };
}

async function listen(server: Server, port: number): Promise<number> {
  try {
    await once(server.listen(port, address), "listening");
    return (server.address() as AddressInfo).port;
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code === "EADDRINUSE" ? "it is in use" : String(cause);
    throw new ContextError("usage", `cannot listen on port ${port}: ${reason}`, {
      hint: "Choose another port, or 0 for any free one.",
      cause,
    });
  }
}

interface AnswerOptions {
  handle(request: Request): Promise<Response>;
  /** Absent if the roots of clients are not used. */
  readonly roots: HttpRoots | undefined;
  isLocal(request: IncomingMessage): boolean;
  mayAsk(request: IncomingMessage): boolean;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { isLocal, mayAsk, handle, roots }: AnswerOptions,
): Promise<void> {
  if (!isLocal(request)) return sendRefusal(response, 403, "The server accepts requests from this machine only.");
  if (!mayAsk(request)) {
    response.setHeader("www-authenticate", "Bearer");
    return sendRefusal(response, 401, "The request needs the server's token: Authorization: Bearer TOKEN.");
  }
  if (Number(request.headers["content-length"] ?? 0) > maxBodyBytes) return sendRefusal(response, 413, tooLarge);
  const url = parseUrl(request);
  if (url?.pathname !== path) return sendRefusal(response, 404, `The server is at ${path}.`);
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const client = clientInSession([request.headers[sessionHeader]].flat()[0]);
  const isLookedAt = mayInitialize(request) || (roots !== undefined && client?.offersRoots === true);
  const whole = limitBody(request, () => sendRefusal(response, 413, tooLarge));
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
const tooLarge = `A request has at most ${formatNumber(maxBodyBytes)} bytes.`;

/** A body without a known length may never end. */
async function* limitBody(request: AsyncIterable<Buffer>, stop: () => void): AsyncGenerator<Buffer> {
  let length = 0;
  for await (const part of request) {
    length += part.length;
    if (length > maxBodyBytes) {
      stop();
      throw new Error(tooLarge);
    }
    yield part;
  }
}

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
  const text = url.startsWith("/") ? `http://${address}${url}` : url;
  return URL.canParse(text) ? new URL(text) : undefined;
}

function sendRefusal(response: ServerResponse, status: number, message: string): void {
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

/** Reads a token from a file that a person named. */
export async function readToken(file: string): Promise<string> {
  const read = await readTextFile(file);
  if (!("text" in read))
    throw new ContextError("unreadable_input", `the token cannot be read: ${read.reason}`, { file });
  return checkToken(read.text.trim(), "it", file);
}

/** Throws unless it is a usable token. `name` is what the message calls it. */
export function checkToken(token: string, name: string, file?: string): string {
  if (/^[\x21-\x7e]{16,}$/.test(token)) return token;
  throw new ContextError("usage", `${name} does not contain a token`, {
    file,
    hint: "Use 16 or more visible ASCII characters without spaces.",
  });
}

/** Reads or creates our own token. Replaces one that others could read. */
export async function ownToken(path: string, env: Environment): Promise<string> {
  const isOpen = process.platform !== "win32" && (((await stat(path).catch(() => undefined))?.mode ?? 0) & 0o077) !== 0;
  const fresh = randomBytes(32).toString("base64url");
  const { after } = await changeFile(path, {
    ...{ root: parse(path).root, env, isPrivate: true },
    change: (current) => (isOpen || !/^[\w-]{43}\n$/.test(current ?? "") ? `${fresh}\n` : current),
  });
  return after!.trim();
}
