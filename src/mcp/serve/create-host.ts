import { AsyncLocalStorage } from "node:async_hooks";
import type { McpServerFactory } from "@modelcontextprotocol/server";
import type { LedgerOptions } from "../../budget/index.ts";
import type { HintMode, PageLimit } from "../../session/index.ts";
import type { Counter } from "../../tokens/index.ts";
import { createTools } from "../../tools/index.ts";
import type { Environment } from "../../workspace/index.ts";
import { limitOfClient } from "../client-limits.ts";
import { countContext } from "../context-cost.ts";
import { openMcpSession } from "../open-session.ts";
import type { Answering } from "./answer-call.ts";
import { createServerFactory, servedContext } from "./create-server.ts";

export interface HostOptions {
  /** The directory that the tools read. */
  readonly root: string;
  readonly env: Environment;
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

/** What stands behind the servers of one process: the tools, and one session that opens with the first call. */
export interface Host {
  readonly factory: McpServerFactory;
  close(): Promise<void>;
}

export async function createHost(options: HostOptions): Promise<Host> {
  const { root, env, version } = options;
  const tools = createTools({ root, env });
  // One for each request: over HTTP several clients ask at the same time, and each cuts elsewhere.
  const clientNames = new AsyncLocalStorage<string | undefined>();
  let opening: Promise<OpenHost> | undefined;
  const open = (): Promise<OpenHost> => {
    const pageLimit = (): PageLimit => options.pageLimit ?? limitOfClient(clientNames.getStore());
    opening ??= openHost({ ...options, tools, pageLimit });
    // A store that is busy or full now may be there for the next call.
    opening.catch(() => {
      opening = undefined;
    });
    return opening;
  };
  const factory = await createServerFactory({
    version,
    tools,
    asClient: (name, answer) => clientNames.run(name, answer),
    answering: open,
    hasHints: options.hints === "schema",
  });
  return { factory, close: async () => (await opening?.catch(() => undefined))?.close() };
}

interface OpenHost extends Answering {
  close(): Promise<void>;
}

type OpenOptions = Omit<HostOptions, "pageLimit"> & {
  readonly tools: ReturnType<typeof createTools>;
  readonly pageLimit: () => PageLimit;
};

async function openHost(options: OpenOptions): Promise<OpenHost> {
  const { storeFile, sessionId: id, goesOn, counter, budget, hints, tools, pageLimit } = options;
  const { openSqliteStore } = await import("../../store/sqlite.ts");
  const store = await openSqliteStore({ path: storeFile });
  const opened = await openMcpSession({ id, goesOn, store, counter, budget, hints, tools, pageLimit });
  await opened.session.record("system", countContext(counter, servedContext(tools)));
  return {
    session: opened.session,
    close: async () => {
      await opened.close();
      await store.close();
    },
  };
}
