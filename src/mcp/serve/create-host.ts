import { AsyncLocalStorage } from "node:async_hooks";
import type { McpServerFactory } from "@modelcontextprotocol/server";
import type { LedgerOptions } from "../../budget/index.ts";
import type { HintMode, PageLimit } from "../../session/index.ts";
import type { Counter } from "../../tokens/index.ts";
import { createTools } from "../../tools/index.ts";
import type { Environment, SecretRules } from "../../workspace/index.ts";
import { limitOfClient } from "../client-limits.ts";
import { countContext } from "../context-cost.ts";
import { type McpSession, openMcpSession } from "../open-session.ts";
import { openServerStore, type ServerStore } from "../server-store.ts";
import { type ClientSessions, createClientSessions } from "./client-sessions.ts";
import { createServerFactory, servedContext } from "./create-server.ts";

export interface HostOptions {
  /** Whether the client's roots say which directory is read. */
  readonly asksRoots: boolean;
  readonly env: Environment;
  readonly version: string;
  /** `note` unless told. */
  readonly hints?: HintMode | undefined;
  /** Instead of what is known of the client. */
  readonly pageLimit?: PageLimit | undefined;
  /** Ends the server in good order. */
  readonly signal: AbortSignal;
  /** The directory that the tools read for a client, and what is set there. `roots`: what the client offers. Rejects where there is none. */
  place(roots: readonly string[] | undefined): Promise<ServedPlace>;
  /** For people: stdout belongs to the protocol. */
  log(text: string): void;
}

export interface ServedPlace {
  readonly root: string;
  readonly counter: Counter;
  readonly budget: LedgerOptions;
  /** Which files the tools hide, as the configuration of the root has it. */
  readonly secrets: SecretRules;
  /** Undefined where results are kept in memory only. */
  readonly storeFile: string | undefined;
  readonly sessionId: string;
  /** The account goes on, whoever served it before. */
  readonly goesOn: boolean;
}

/** What stands behind the servers of one process: the tools, and a session for each client. */
export interface Host {
  readonly factory: McpServerFactory;
  /** A client over HTTP has said that it goes. */
  closeClient(id: string): Promise<void>;
  close(): Promise<void>;
}

export async function createHost(options: HostOptions): Promise<Host> {
  const { env, version } = options;
  // One for each request: clients that share a session ask at the same time, and each cuts elsewhere.
  const clientNames = new AsyncLocalStorage<string | undefined>();
  const pageLimit = (): PageLimit => options.pageLimit ?? limitOfClient(clientNames.getStore());
  const stores = new Map<string | undefined, Promise<ServerStore>>();
  const storeOf = (file: string | undefined): Promise<ServerStore> => {
    const opening = stores.get(file) ?? openServerStore({ file, consequence, log: options.log });
    stores.set(file, opening);
    return opening;
  };
  /** By root. */
  const served = new Map<string, ClientSessions>();
  const sessionsOf = (place: ServedPlace): ClientSessions => {
    const found = served.get(place.root);
    if (found !== undefined) return found;
    const sessions = createClientSessions(async (client) =>
      openSession({
        ...place,
        env,
        hints: options.hints,
        pageLimit,
        client,
        kept: await storeOf(place.storeFile),
      }),
    );
    served.set(place.root, sessions);
    return sessions;
  };
  const factory = await createServerFactory({
    version,
    // What they are does not depend on the directory.
    tools: createTools({ root: "/", env }),
    asksRoots: options.asksRoots,
    asClient: async ({ id, name, roots }, answer) => {
      const place = await options.place(roots);
      return clientNames.run(name, () => sessionsOf(place).use(id, answer));
    },
    hasHints: options.hints === "schema",
    log: options.log,
  });
  return {
    factory,
    async closeClient(id) {
      for (const sessions of served.values()) await sessions.close(id);
    },
    async close() {
      for (const sessions of served.values()) await sessions.closeAll();
      for (const opening of stores.values()) await (await opening).store.close();
    },
  };
}

const consequence = "Results are kept in memory until this server ends.";

type OpenOptions = Omit<ServedPlace, "storeFile"> & {
  readonly env: Environment;
  readonly hints: HintMode | undefined;
  readonly pageLimit: () => PageLimit;
  readonly client: string | undefined;
  readonly kept: ServerStore;
};

async function openSession(options: OpenOptions): Promise<McpSession> {
  const {
    root,
    env,
    secrets,
    sessionId: id,
    goesOn,
    client,
    kept,
    counter,
    budget,
    hints,
    pageLimit,
  } = options;
  const tools = createTools({ root, env, secrets });
  const opened = await openMcpSession({
    ...{ id, goesOn, client, kept, counter, budget, hints, tools, pageLimit },
  });
  try {
    await opened.session.record("system", countContext(counter, servedContext(tools)));
    return opened;
  } catch (error) {
    await opened.close().catch(() => {});
    throw error;
  }
}
