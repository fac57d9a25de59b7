import type { McpSession } from "../open-session.ts";

/** The sessions of a process, one for each client. */
export interface ClientSessions {
  /** Answers in the client's session. Those who do not say who they are, undefined, share one. */
  use<Result>(client: string | undefined, answer: (session: McpSession) => Promise<Result>): Promise<Result>;
  /** The client is gone. With a call under way its session stays, until others need the place. */
  close(client: string): Promise<void>;
  closeAll(): Promise<void>;
}

interface OpenSession {
  readonly session: Promise<McpSession>;
  /** Under way. */
  calls: number;
}

/** Most clients never say that they go. */
const mostOpen = 100;

/** Opens a session with a client's first call. Of more than `most` those are closed that were used least recently, but none with a call
 *  under way, and not the shared one, which has nobody to whom it could come back. */
export function createClientSessions(
  open: (client: string | undefined) => Promise<McpSession>,
  most: number = mostOpen,
): ClientSessions {
  /** In the order of their last use. */
  const opened = new Map<string | undefined, OpenSession>();
  // Whoever opens waits for it: an account is free only when it is closed.
  let closing: Promise<void> = Promise.resolve();
  const close = async (client: string | undefined, { session }: OpenSession): Promise<void> => {
    opened.delete(client);
    const end = async (): Promise<void> => (await session).close();
    closing = closing.then(end).catch(() => {});
    await closing;
  };
  const begin = (client: string | undefined): OpenSession => {
    for (const [other, each] of opened) {
      if (opened.size < most) break;
      if (other !== undefined && each.calls === 0) void close(other, each);
    }
    const session = closing.then(() => open(client));
    session.catch(() => opened.get(client)?.session === session && opened.delete(client));
    return { session, calls: 0 };
  };
  return {
    async use(client, answer) {
      const used = opened.get(client) ?? begin(client);
      opened.delete(client);
      opened.set(client, used);
      used.calls += 1;
      try {
        return await answer(await used.session);
      } finally {
        used.calls -= 1;
      }
    },
    async close(client) {
      const left = opened.get(client);
      if (left?.calls === 0) await close(client, left);
    },
    async closeAll() {
      for (const [client, each] of opened) void close(client, each);
      await closing;
    },
  };
}
