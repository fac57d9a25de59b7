/** A local server that answers as a test says, and keeps what clients sent. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Fields } from "../text/index.ts";

export interface Received {
  readonly path: string;
  readonly body: Fields;
}

/** One JSON answer, or server-sent events, each written as soon as it is available. */
export type Reply =
  | { readonly status?: number; readonly json: object }
  | { readonly events: Iterable<string> | AsyncIterable<string> };

export interface ScriptedServer {
  readonly url: string;
  readonly received: readonly Received[];
  close(): Promise<void>;
}

export async function startServer(answer: (received: Received) => Reply): Promise<ScriptedServer> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString("utf8");
    const call = { path: request.url ?? "", body: text === "" ? {} : (JSON.parse(text) as Fields) };
    received.push(call);
    await write(answer(call), response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

async function write(reply: Reply, response: ServerResponse): Promise<void> {
  if ("json" in reply) {
    const headers = { "content-type": "application/json", "request-id": "req_1", "x-request-id": "req_1" };
    response.writeHead(reply.status ?? 200, headers).end(JSON.stringify(reply.json));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  for await (const event of reply.events) response.write(event);
  response.end();
}
