/** Who asks over HTTP. In revisions before 2026-07-28 a client says its name once, at initialize, and each request is answered by a
 *  server of its own: the name, and whether it offers roots, travel in the session id that the client sends with every further request,
 *  and the id itself tells one client from another. Nothing is kept here. */
import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { clientNameOf, isObject, parseLine } from "../lines/rpc-message.ts";

export interface HttpClient {
  /** Of one conversation: clients of the same name have two. */
  readonly id: string;
  readonly name: string;
  /** It said at initialize that it can tell its roots. */
  readonly offersRoots: boolean;
}

export const sessionHeader = "mcp-session-id";

/** An initialize has some hundred bytes. */
const mostBytes = 100_000;
const mostNameBytes = 100;

/** Whether the request can be the first of a client: those that follow name the session. Some clients name their revision from the first
 *  one on. */
export function mayInitialize({ method, headers }: IncomingMessage): boolean {
  const bytes = Number(headers["content-length"] ?? 0);
  return method === "POST" && !(sessionHeader in headers) && bytes <= mostBytes;
}

/** The body of such a request: whole, or as it comes where it turns out to be none. */
export async function readFirst(request: AsyncIterable<Buffer>): Promise<Buffer | AsyncIterable<Buffer>> {
  const rest = request[Symbol.asyncIterator]();
  const read: Buffer[] = [];
  for (let bytes = 0; bytes <= mostBytes; bytes += read.at(-1)!.length) {
    const { done, value } = await rest.next();
    if (done) return Buffer.concat(read);
    read.push(value);
  }
  return (async function* () {
    yield* read;
    yield* { [Symbol.asyncIterator]: () => rest };
  })();
}

const rootsMark = ".roots";

/** The session id for the client that sent this, where it is an initialize. */
export function sessionOf(body: Buffer): string | undefined {
  const initialize = parseLine(body)?.messages.find(({ method }) => method === "initialize");
  const name = initialize && clientNameOf(initialize);
  if (name === undefined) return undefined;
  const capabilities = initialize?.params?.capabilities;
  const roots = isObject(capabilities) && isObject(capabilities.roots) ? rootsMark : "";
  return `${randomUUID()}.${Buffer.from(name).subarray(0, mostNameBytes).toString("base64url")}${roots}`;
}

/** The client that was given a session id; undefined for an id that is not ours. */
export function clientInSession(session: string | null | undefined): HttpClient | undefined {
  const [, id, encoded, roots] = /^([\da-f-]{36})\.([\w-]{1,140})(\.roots)?$/.exec(session ?? "") ?? [];
  if (id === undefined || encoded === undefined) return undefined;
  return { id, name: Buffer.from(encoded, "base64url").toString("utf8"), offersRoots: roots !== undefined };
}
