/** HTTP clients: who sent a request, and which roots the client has. */
import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { isPlainObject, isText, listOf, objectOf } from "../../core/text/index.ts";
import { parseLine, type RpcMessage, readClientName } from "./rpc-message.ts";

/** Identifies HTTP clients. Before revision 2026-07-28, a client gives its name once, at initialize, and each request
 *  gets its own server. So the session id, which the client sends with every further request, contains the name and
 *  whether the client offers roots. The server stores nothing. */
interface HttpClient {
  /** Unique per conversation, because two clients can have the same name. */
  readonly id: string;
  readonly name: string;
  /** Whether it said at initialize that it can send its roots. */
  readonly offersRoots: boolean;
}

export const sessionHeader = "mcp-session-id";

/** Returns the session id for the client if this is its initialize. */
export function createHttpSession(body: Buffer): string | undefined {
  const initialize = parseLine(body)?.messages.find(({ method }) => method === "initialize");
  const name = initialize && readClientName(initialize);
  if (name === undefined) return undefined;
  const capabilities = initialize?.params?.capabilities;
  const roots = isPlainObject(capabilities) && isPlainObject(capabilities.roots) ? ".roots" : "";
  return `${randomUUID()}.${Buffer.from(name).subarray(0, 100).toString("base64url")}${roots}`;
}

/** Returns the client that was given a session id, or undefined if the id is not one of ours. */
export function clientInSession(session: string | null | undefined): HttpClient | undefined {
  const [, id, encoded, roots] = /^([\da-f-]{36})\.([\w-]{1,140})(\.roots)?$/.exec(session ?? "") ?? [];
  if (id === undefined || encoded === undefined) return undefined;
  return { id, name: Buffer.from(encoded, "base64url").toString("utf8"), offersRoots: roots !== undefined };
}

/** The roots of the client whose request is being answered. */
export const rootsOfRequest: AsyncLocalStorage<readonly string[] | undefined> = new AsyncLocalStorage();

/** Asks clients for their roots before revision 2026-07-28. A server can ask only inside an answer. So the answer to the
 *  first tool call is a stream that starts with our question. It continues with the result after the client has sent
 *  its roots in another request. */
export interface HttpRoots {
  /** Returns undefined until the client has sent them. */
  find(clientId: string): readonly string[] | undefined;
  /** Sends the question. Resolves when it is answered or when time is up. */
  ask(clientId: string, send: (event: string) => void): Promise<readonly string[]>;
  /** Takes an answer to one of the questions. Returns false if it is not one. */
  take(clientId: string, message: RpcMessage): boolean;
  forget(clientId: string): void;
}

export function createHttpRoots(): HttpRoots {
  const known = new Map<string, readonly string[]>();
  /** By client and id of the question. */
  const waiting = new Map<string, (roots: readonly string[]) => void>();
  const remember = (clientId: string, roots: readonly string[]): void => {
    known.delete(clientId);
    known.set(clientId, roots);
    // Only the newest clients are remembered. A forgotten one is asked again.
    for (const oldest of known.keys()) if (known.size > 200) known.delete(oldest);
  };
  return {
    find: (clientId) => known.get(clientId),
    ask(clientId, send) {
      const id = `roots-${randomUUID()}`;
      const question = JSON.stringify({ jsonrpc: "2.0", id, method: "roots/list" });
      return new Promise((resolve) => {
        const key = `${clientId} ${JSON.stringify(id)}`;
        const settle = (roots: readonly string[]): void => {
          clearTimeout(timer);
          waiting.delete(key);
          remember(clientId, roots);
          resolve(roots);
        };
        // A client that offers roots but does not send them is served without.
        const timer = setTimeout(() => settle([]), 3_000);
        waiting.set(key, settle);
        send(`event: message\ndata: ${question}\n\n`);
      });
    },
    take(clientId, { id, method, result }) {
      const settle = method === undefined ? waiting.get(`${clientId} ${id}`) : undefined;
      const isRoots = objectOf({ roots: listOf(objectOf({ uri: isText })) });
      settle?.(isRoots(result) ? result.roots.map(({ uri }) => uri) : []);
      return settle !== undefined;
    },
    forget: (clientId) => void known.delete(clientId),
  };
}
