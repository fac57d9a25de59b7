/** The roots of clients over HTTP, in revisions before 2026-07-28. A server may ask only inside of an answer: the first call of a tool is
 *  answered by a stream that begins with our question, and goes on with the result once the client has told its roots in a request of
 *  its own. */
import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { isText, listOf, objectOf } from "../../text/index.ts";
import type { RpcMessage } from "../lines/rpc-message.ts";

/** Those of the client whose request is being answered. */
export const rootsOfRequest: AsyncLocalStorage<readonly string[] | undefined> = new AsyncLocalStorage();

export interface HttpRoots {
  /** Undefined until the client has told them. */
  find(clientId: string): readonly string[] | undefined;
  /** Sends the question, and resolves when it is answered, or nobody answers it in time. */
  ask(clientId: string, send: (event: string) => void): Promise<readonly string[]>;
  /** Takes an answer to one of the questions. False: it is none. */
  take(clientId: string, message: RpcMessage): boolean;
  forget(clientId: string): void;
}

/** A client that offers roots and does not tell them is served without. */
const mostMs = 3_000;
/** Clients that are remembered, the newest. Whoever is forgotten is asked again. */
const mostClients = 200;

export function createHttpRoots(): HttpRoots {
  const known = new Map<string, readonly string[]>();
  /** By client and id of the question. */
  const waiting = new Map<string, (roots: readonly string[]) => void>();
  const remember = (clientId: string, roots: readonly string[]): void => {
    known.delete(clientId);
    known.set(clientId, roots);
    for (const oldest of known.keys()) if (known.size > mostClients) known.delete(oldest);
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
        const timer = setTimeout(() => settle([]), mostMs);
        waiting.set(key, settle);
        send(`event: message\ndata: ${question}\n\n`);
      });
    },
    take(clientId, { id, method, result }) {
      const settle = method === undefined ? waiting.get(`${clientId} ${id}`) : undefined;
      settle?.(isRoots(result) ? result.roots.map(({ uri }) => uri) : []);
      return settle !== undefined;
    },
    forget: (clientId) => void known.delete(clientId),
  };
}

const isRoots = objectOf({ roots: listOf(objectOf({ uri: isText })) });
