/** Serves a provider over HTTP on 127.0.0.1. */
import { once } from "node:events";
import { createServer } from "node:http";
import zlib from "node:zlib";

/** How many events a connection that breaks in the middle of an answer sends. */
export const cutAfter = 2;

/** @param {(request: object) => Promise<object>} handle @param {number} port 0 for a free one */
export async function serve(handle, port) {
  const server = createServer(async (request, response) => {
    const body = await readBody(request);
    const { method, url: path, headers } = request;
    await write(await handle({ method, path, headers, body }), response);
  });
  // Codex tries a web socket first and goes on over HTTP.
  server.on("upgrade", (_, socket) => socket.end("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"));
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

async function readBody(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const unpack = { gzip: zlib.gunzipSync, zstd: zlib.zstdDecompressSync }[request.headers["content-encoding"]];
  try {
    return JSON.parse((unpack?.(bytes) ?? bytes).toString("utf8"));
  } catch {
    return undefined;
  }
}

async function write({ status, headers, json, events, isDropped, isCut }, response) {
  if (isDropped) return response.destroy();
  if (events === undefined) {
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(json));
    return;
  }
  response.writeHead(status, { "content-type": "text/event-stream", ...headers });
  let sent = 0;
  for await (const event of events) {
    if (isCut && sent++ === cutAfter) return response.destroy();
    response.write(event);
  }
  response.end();
}
