import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import { ContextError } from "../../errors.ts";
import { createHost, type Host, type HostOptions } from "./create-host.ts";
import { clientInSession, mayInitialize, readFirst, sessionHeader, sessionOf } from "./http-clients.ts";

const address = "127.0.0.1";
const path = "/mcp";

type Handle = (request: Request) => Promise<Response>;

/** Serves the clients of this machine over HTTP until the signal comes. Each has a session of its own, told by the id that it was given
 *  at initialize; those without one share a session: nothing else in a request tells apart conversations. */
export async function serveHttp(options: HostOptions, port: number): Promise<void> {
  const { signal, log } = options;
  const host = await createHost(options);
  const library = await import("@modelcontextprotocol/server");
  const handler = library.createMcpHandler(host.factory, { onerror: ({ message }) => log(message) });
  const handle = takeEnds(handler.fetch, host);
  const names = library.localhostAllowedHostnames();
  // A page of another site, open in a browser of this machine, reaches this port as well: its Origin tells it, or after a DNS
  // rebinding its Host.
  const isLocal = ({ headers }: IncomingMessage): boolean =>
    library.validateHostHeader(headers.host, names).ok &&
    library.validateOriginHeader(headers.origin, library.localhostAllowedOrigins()).ok;
  const server = createServer((request, response) => {
    void answer(request, response, { isLocal, handle }).catch((error: Error) => {
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
  isLocal(request: IncomingMessage): boolean;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { isLocal, handle }: AnswerOptions,
): Promise<void> {
  if (!isLocal(request)) return refuse(response, 403, "Requests are taken from this machine only.");
  const url = urlOf(request);
  if (url?.pathname !== path) return refuse(response, 404, `The server is at ${path}.`);
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const sent = mayInitialize(request) ? await readFirst(request) : request;
  const session = Buffer.isBuffer(sent) ? sessionOf(sent) : undefined;
  const { status, headers, body } = await handle(
    toRequest(request, { url, signal: gone.signal, body: sent }),
  );
  if (session !== undefined) headers.set(sessionHeader, session);
  response.writeHead(status, Object.fromEntries(headers));
  if (body === null) response.end();
  else
    Readable.fromWeb(body as ReadableStream)
      .on("error", () => response.destroy())
      .pipe(response);
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
