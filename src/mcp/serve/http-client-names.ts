/** Who asks over HTTP. In revisions before 2026-07-28 a client says its name once, at initialize, and each request is answered by a
 *  server of its own: the name travels in the session id that the client sends with every further request. Nothing is kept here. */
import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { clientNameOf, parseLine } from "../lines/rpc-message.ts";

export const sessionHeader = "mcp-session-id";

/** An initialize has some hundred bytes. */
const mostBytes = 100_000;
const mostNameBytes = 100;

/** Whether the request can be the first of a client: those that follow name the session, or their revision. */
export function mayInitialize({ method, headers }: IncomingMessage): boolean {
  const bytes = Number(headers["content-length"]);
  const isKnown = sessionHeader in headers || "mcp-protocol-version" in headers;
  return method === "POST" && !isKnown && bytes > 0 && bytes <= mostBytes;
}

/** The session id for the client that sent this, where it is an initialize. */
export function sessionOf(body: Buffer): string | undefined {
  const initialize = parseLine(body)?.messages.find(({ method }) => method === "initialize");
  const name = initialize && clientNameOf(initialize);
  if (name === undefined) return undefined;
  return `${randomUUID()}.${Buffer.from(name).subarray(0, mostNameBytes).toString("base64url")}`;
}

/** The name in a session id; undefined for one that is not ours. */
export function nameInSession(session: string | null | undefined): string | undefined {
  const encoded = /^[\da-f-]{36}\.([\w-]{1,140})$/.exec(session ?? "")?.[1];
  return encoded === undefined ? undefined : Buffer.from(encoded, "base64url").toString("utf8");
}
