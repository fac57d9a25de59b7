import { AsyncLocalStorage } from "node:async_hooks";
import type { McpServerFactory } from "@modelcontextprotocol/server";
import type { LedgerOptions } from "../../budget/index.ts";
import type { HintMode, PageLimit } from "../../session/index.ts";
import type { Store } from "../../store/index.ts";
import type { Counter } from "../../tokens/index.ts";
import { createTools } from "../../tools/index.ts";
import type { Environment, SecretRules } from "../../workspace/index.ts";
import { limitOfClient } from "../client-limits.ts";
import { countContext } from "../context-cost.ts";
import { type McpSession, openMcpSession } from "../open-session.ts";
import { createClientSessions } from "./client-sessions.ts";
import { createServerFactory, servedContext } from "./create-server.ts";

export interface HostOptions {
  /** The directory that the tools read. */
  readonly root: string;
  readonly env: Environment;
  readonly secrets?: SecretRules | undefined;
  readonly version: string;
  readonly counter: Counter;
  readonly budget: LedgerOptions;
  readonly storeFile: string;
  readonly sessionId: string;
  /** The account goes on, whoever served it before. */
  readonly goesOn: boolean;
  /** `note` unless told. */
  readonly hints?: HintMode | undefined;
  /** Instead of what is known of the client. */
  readonly pageLimit?: PageLimit | undefined;
  /** Ends the server in good order. */
  readonly signal: AbortSignal;
  /** For people: stdout belongs to the protocol. */
  log(text: string): void;
}

/** What stands behind the servers of one process: the tools, and a session for each client. */
export interface Host {
  readonly factory: McpServerFactory;
  /** A client over HTTP has said that it goes. */
  closeClient(id: string): Promise<void>;
  close(): Promise<void>;
}

export async function createHost(options: HostOptions): Promise<Host> {
  const { root, env, secrets, version } = options;
  const tools = createTools({ root, env, secrets });
  // One for each request: clients that share a session ask at the same time, and each cuts elsewhere.
  const clientNames = new AsyncLocalStorage<string | undefined>();
  const pageLimit = (): PageLimit => options.pageLimit ?? limitOfClient(clientNames.getStore());
  let opening: Promise<Store> | undefined;
  const sessions = createClientSessions(async (client) => {
    opening ??= openStore(options);
    // A store that is busy or full now may be there for the next call.
    opening.catch(() => {
      opening = undefined;
    });
    return openSession({ ...options, tools, pageLimit, client, store: await opening });
  });
  const factory = await createServerFactory({
    version,
    tools,
    asClient: ({ id, name }, answer) => clientNames.run(name, () => sessions.use(id, answer)),
    hasHints: options.hints === "schema",
  });
  return {
    factory,
    closeClient: sessions.close,
    async close() {
      await sessions.closeAll();
      await (await opening?.catch(() => undefined))?.close();
    },
  };
}

async function openStore({ storeFile }: HostOptions): Promise<Store> {
  const { openSqliteStore } = await import("../../store/sqlite.ts");
  return openSqliteStore({ path: storeFile });
}

type OpenOptions = Omit<HostOptions, "pageLimit"> & {
  readonly tools: ReturnType<typeof createTools>;
  readonly pageLimit: () => PageLimit;
  readonly client: string | undefined;
  readonly store: Store;
};

async function openSession(options: OpenOptions): Promise<McpSession> {
  const { sessionId: id, goesOn, client, store, counter, budget, hints, tools, pageLimit } = options;
  const opened = await openMcpSession({
    ...{ id, goesOn, client, store, counter, budget, hints, tools, pageLimit },
  });
  try {
    await opened.session.record("system", countContext(counter, servedContext(tools)));
    return opened;
  } catch (error) {
    await opened.close().catch(() => {});
    throw error;
  }
}
