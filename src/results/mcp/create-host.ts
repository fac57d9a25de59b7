import { AsyncLocalStorage } from "node:async_hooks";
import type { McpServerFactory, ServerContext, Tool } from "@modelcontextprotocol/server";
import { createIntake } from "../../conversation/intake/index.ts";
import { messageOf, type SecretRules } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import type { Environment } from "../../host/index.ts";
import {
  type BudgetedTool,
  type HintMode,
  type JsonProperty,
  type LedgerOptions,
  type PageFormat,
  type PageLimit,
  shareOfLimit,
  type ToolArguments,
  type ToolDefinition,
} from "../session/index.ts";
import { createTools } from "../tools/index.ts";
import { countContext, findClientLimit } from "./client-limits.ts";
import { clientInSession, rootsOfRequest, sessionHeader } from "./http-clients.ts";
import {
  type ClientSessions,
  type Conversation,
  createClientSessions,
  findConversation,
  type McpSession,
  openMcpSession,
} from "./open-session.ts";
import {
  type Answer,
  alwaysLoaded,
  budgetStatusTool,
  nextPageTool,
  type PageTool,
  recallPageTool,
  settle,
  toCallResult,
} from "./page-tools.ts";
import { type CommandPlace, type CommandRules, createRunCommand } from "./run-command.ts";
import { recordServer, type ServerRecorder } from "./running-servers.ts";
import { openServerStore, type ServerStore, type StoreUpkeep } from "./server-store.ts";

export interface HostOptions {
  /** Whether the client's roots decide which directory is read. */
  readonly asksRoots: boolean;
  readonly env: Environment;
  readonly version: string;
  /** @default "note" */
  readonly hints?: HintMode | undefined;
  /** The form of results. */
  readonly format: PageFormat;
  /** The names of the served tools. `next_page` is always served. Undefined for all tools. */
  readonly tools?: readonly string[] | undefined;
  /** What `run_command` may run. Without it the tool is not served. */
  readonly commands?: CommandRules | undefined;
  /** Overrides what is known about the client. */
  readonly pageLimit?: PageLimit | undefined;
  /** Ends the server gracefully. */
  readonly signal: AbortSignal;
  /** Returns the directory that the tools read for a client, and its settings. `roots` are the client's roots. Rejects
   *  if there is no directory. */
  place(roots: readonly string[] | undefined): Promise<ServedPlace>;
  /** Prints a message for people, because stdout belongs to the protocol. */
  log(text: string): void;
}

export interface ServedPlace {
  readonly root: string;
  readonly counter: Counter;
  readonly budget: LedgerOptions;
  /** The rules for hidden files of the root's configuration. */
  readonly secrets: SecretRules;
  /** Undefined if results are kept in memory only. */
  readonly storeFile: string | undefined;
  readonly upkeep?: StoreUpkeep | undefined;
  readonly sessionId: string;
  /** Whether a person named the session. Then all its processes have one account. */
  readonly isNamed: boolean;
  /** The conversation, if the client names it in the server's environment. */
  readonly conversation?: Conversation | undefined;
}

/** What the servers of one process share: the tools, and a session for each client. */
export interface Host {
  readonly factory: McpServerFactory;
  /** Called when an HTTP client has announced its end. */
  closeClient(id: string): Promise<void>;
  close(): Promise<void>;
}

export async function createHost(options: HostOptions): Promise<Host> {
  const { env, tools: names, commands, log } = options;
  const ownTools = [...servedTools(pageTools, names), ...(commands === undefined ? [] : [createRunCommand(commands)])];
  // One per request: clients that share a session can ask at the same time and have different limits.
  const clientNames = new AsyncLocalStorage<string | undefined>();
  const stores = new Map<string | undefined, Promise<ServerStore>>();
  const openStoreOf = ({ storeFile: file, upkeep }: ServedPlace): Promise<ServerStore> => {
    const opening = stores.get(file) ?? openServerStore({ file, upkeep, log });
    stores.set(file, opening);
    return opening;
  };
  /** The conversations that calls have named. */
  const conversations = new Map<string | undefined, Conversation | undefined>();
  /** By root. */
  const recorders = new Map<string, ServerRecorder>();
  const served = new Map<string, ClientSessions>();
  const findSessions = (place: ServedPlace): ClientSessions => {
    const found = served.get(place.root);
    if (found !== undefined) return found;
    const sessions = createClientSessions(async (client) => {
      const conversation = conversations.get(client);
      const asking = conversation === undefined ? { client } : { conversation };
      const kept = await openStoreOf(place);
      const pageLimit = () => options.pageLimit ?? findClientLimit(clientNames.getStore(), place.budget);
      const about = { kind: "serve", name: place.root, cwd: process.cwd() } as const;
      const recorder = recorders.get(place.root) ?? recordServer(kept.store, about);
      recorders.set(place.root, recorder);
      const opened = await openSession(options, { ...place, ...asking }, { kept, pageLimit, pageTools: ownTools });
      return { ...opened, recorder };
    });
    served.set(place.root, sessions);
    return sessions;
  };
  const factory = await createServerFactory(options, {
    // The definitions do not depend on the directory.
    tools: servedTools(createTools({ root: "/", env }), names),
    pageTools: ownTools,
    asClient: async ({ id, conversation, name, roots }, answer) => {
      const place = await options.place(roots);
      const client = id ?? conversation?.id;
      if (id === undefined) conversations.set(client, conversation);
      return clientNames.run(name, () => findSessions(place).use(client, answer));
    },
  });
  return {
    factory,
    async closeClient(id) {
      for (const sessions of served.values()) await sessions.close(id);
    },
    async close() {
      for (const sessions of served.values()) await sessions.closeAll();
      for (const recorder of recorders.values()) await recorder.close();
      for (const opening of stores.values()) await (await opening).store.close();
    },
  };
}

/** The names of all tools of the server. */
export function serverToolNames(env: Environment): string[] {
  return [...createTools({ root: "/", env }), ...pageTools].map(({ name }) => name);
}

/** A page can always be continued. */
function servedTools<Tool extends { readonly name: string }>(
  tools: readonly Tool[],
  names: readonly string[] | undefined,
): readonly Tool[] {
  return names === undefined ? tools : tools.filter(({ name }) => names.includes(name) || name === nextPageTool.name);
}

async function openSession(
  { env, hints, format, tools: names }: HostOptions,
  place: ServedPlace & { readonly client?: string | undefined },
  parts: {
    readonly kept: ServerStore;
    readonly pageLimit: () => PageLimit;
    readonly pageTools: readonly PageTool[];
  },
): Promise<McpSession & { readonly commands: CommandPlace }> {
  const { root, secrets, sessionId: id, isNamed, conversation, client, counter, budget } = place;
  const { kept, pageLimit, pageTools: own } = parts;
  const tools = servedTools(createTools({ root, env, secrets }), names);
  const account = { id, isNamed, conversation, client, kept };
  const opened = await openMcpSession({ ...account, counter, budget, tools, hints, format, pageLimit });
  const context = {
    tools: listTools([...tools, ...own], hints === "schema"),
    instructions: instructions[format],
  };
  // How much of a result may be a command's output. The rest is for its frame.
  const outputShare = 0.9;
  try {
    await opened.session.record("system", countContext(counter, context));
    const intake = await createIntake({
      store: kept.store,
      sessionId: opened.session.id,
      agentId: "commands",
      counter,
      deltas: false,
      maxResultTokens: Math.max(200, Math.floor(outputShare * (budget.perToolCall ?? 8_000))),
      shareOfLimit: (text) => shareOfLimit(text, pageLimit()) / outputShare,
      recallHint: (name) => `recall with id ${name}, and pattern or lines`,
    });
    return { ...opened, commands: { root, env, intake } };
  } catch (error) {
    await opened.close().catch(() => {});
    throw error;
  }
}

interface ServerParts {
  readonly tools: readonly BudgetedTool[];
  readonly pageTools: readonly PageTool[];
  /** Answers in the client's session, within the client's limits. The first call of a tool opens the session, so a
   *  client that only lists the tools leaves no trace. */
  readonly asClient: <Result>(client: Asking, answer: (answering: Answering) => Promise<Result>) => Promise<Result>;
}

/** Who asks, as far as it is known. */
interface Asking {
  /** Set for HTTP. */
  readonly id: string | undefined;
  /** Set if the call names its conversation. */
  readonly conversation: Conversation | undefined;
  readonly name: string | undefined;
  /** The addresses of the roots. Undefined if the client offers none. */
  readonly roots: readonly string[] | undefined;
}

/** Creates servers: one for each connection, or for each request over HTTP. */
async function createServerFactory(options: HostOptions, parts: ServerParts): Promise<McpServerFactory> {
  const library = await import("@modelcontextprotocol/server");
  const { format, version } = options;
  // The tools' definitions state the budget and change with it.
  const hasHints = options.hints === "schema";
  const tools = listTools([...parts.tools, ...parts.pageTools], hasHints);
  return ({ era, requestInfo }) => {
    const known = clientInSession(requestInfo?.headers.get(sessionHeader));
    const server = new library.Server(
      { name: "plimsoll", title: "Plimsoll", version },
      { capabilities: { tools: hasHints ? { listChanged: true } : {} }, instructions: instructions[format] },
    );
    const nameIn = ({ mcpReq }: ServerContext): string | undefined => {
      // From revision 2026-07-28, whose types do not describe its content.
      const info = (mcpReq.envelope as Envelope)?.[library.CLIENT_INFO_META_KEY] as { name?: string } | undefined;
      return info?.name ?? server.getClientVersion()?.name ?? known?.name;
    };
    const rootsIn = rootsReader(server, { ...options, library, era, isHttp: requestInfo !== undefined });
    const askingIn = async (context: ServerContext): Promise<Asking | "must ask"> => {
      const roots = await rootsIn(context);
      const conversation = findConversation({ meta: context.mcpReq._meta });
      return roots === "must ask" ? roots : { id: known?.id, conversation, name: nameIn(context), roots };
    };
    server.setRequestHandler("tools/list", async (_request, context) => {
      const asking = hasHints ? await askingIn(context) : "must ask";
      if (asking === "must ask") return { tools };
      const hinted = parts.asClient(asking, async ({ session }) =>
        listTools([...session.toolSchemas(), ...parts.pageTools], true),
      );
      // Without a directory to read, the list is the usual one and each call reports the problem.
      return { tools: await hinted.catch(() => tools) };
    });
    server.setRequestHandler("tools/call", async ({ params }, context) => {
      const asking = await askingIn(context);
      if (asking === "must ask") {
        const { inputRequired } = library;
        return inputRequired({ inputRequests: { [rootsKey]: inputRequired.listRoots() } });
      }
      const { name, arguments: args = {} } = params;
      const call = { name, args, format, pageTools: parts.pageTools, signal: context.mcpReq.signal };
      const answer = () => parts.asClient(asking, (answering) => answerCall(answering, call));
      const result = toCallResult(await settle(answer, format), format);
      // Over HTTP there may be nobody who receives it.
      if (hasHints) await server.sendToolListChanged().catch(() => {});
      return result;
    });
    return server;
  };
}

type Envelope = Readonly<Record<string, unknown>> | undefined;

const rootsKey = "roots";

/** Reads the roots of the client of a request. In revision 2026-07-28 a server can ask only with an answer that wants
 *  more input (`must ask`). Over HTTP each request has its own server, and clients of older revisions are asked before
 *  (`http-clients.ts`). */
function rootsReader(
  server: InstanceType<typeof import("@modelcontextprotocol/server")["Server"]>,
  options: Pick<HostOptions, "asksRoots" | "log"> & {
    readonly library: typeof import("@modelcontextprotocol/server");
    readonly era: "legacy" | "modern";
    readonly isHttp: boolean;
  },
): (context: ServerContext) => Promise<readonly string[] | undefined | "must ask"> {
  const { asksRoots, library, era, isHttp, log } = options;
  if (!asksRoots) return async () => undefined;
  if (isHttp && era === "legacy") return async () => rootsOfRequest.getStore();
  let known: Promise<readonly string[] | undefined> | undefined;
  if (era === "legacy") {
    server.setNotificationHandler("notifications/roots/list_changed", () => {
      known = undefined;
    });
    const ask = async (): Promise<readonly string[] | undefined> => {
      if (server.getClientCapabilities()?.roots === undefined) return undefined;
      try {
        // A client that offers roots but does not send them is served without.
        return listAddresses(await server.listRoots(undefined, { timeout: 3_000 }));
      } catch (error) {
        log(`the client offers roots but did not send them: ${messageOf(error)}`);
        return undefined;
      }
    };
    return () => {
      known ??= ask();
      return known;
    };
  }
  return async ({ mcpReq }) => {
    const capabilities = (mcpReq.envelope as Envelope)?.[library.CLIENT_CAPABILITIES_META_KEY] as Envelope;
    if (capabilities?.roots === undefined) return undefined;
    const given = library.inputResponse(mcpReq.inputResponses, rootsKey);
    if (given.kind === "roots") known = Promise.resolve(listAddresses(given));
    // Over HTTP the next request has another server, which cannot recognize the client.
    return known ?? (mcpReq.inputResponses === undefined ? "must ask" : undefined);
  };
}

function listAddresses({ roots }: { readonly roots: readonly { readonly uri: string }[] }): string[] {
  return roots.map(({ uri }) => uri);
}

const whenToUse =
  "Use these tools to list, search and read this project and its git history when a result may be large, or when you " +
  "have no tools for that: results stay within a token budget. For one small known file, or to change files and run " +
  "commands, use your own tools.";

/** Short, because clients may put it before every conversation. */
const instructions: Readonly<Record<PageFormat, string>> = {
  text: `${whenToUse} A result that is not complete ends in a line in brackets. Its "next:" says how to continue: the same call with that offset, or next_page with that token. Start with summaries where they are enough: modes tree, files, count, stat.`,
  json: `${whenToUse} If data.truncated is true, pass data.continuation_token to next_page for the rest, or ask a narrower question. budget_status shows what is left.`,
};

/** Without hints, the list is the same in every call and session. A list that changes breaks the provider's prompt
 *  cache. */
function listTools(tools: readonly (ToolDefinition & Pick<PageTool, "annotations">)[], hasHints: boolean): Tool[] {
  const readsOnly = { readOnlyHint: true, destructiveHint: false, openWorldHint: false };
  return tools.map(({ name, description, inputSchema, annotations = readsOnly }) => ({
    name,
    description,
    inputSchema: (hasHints ? { ...inputSchema } : shortenSchema(inputSchema)) as Tool["inputSchema"],
    annotations,
    ...(pageTools.some((each) => each.name === name) && { _meta: alwaysLoaded }),
  }));
}

/** Every conversation pays for the definitions, so they leave out what a model does not need. The tools check arguments
 *  themselves. */
function shortenSchema({ properties, required }: ToolDefinition["inputSchema"]): object {
  // Parameters that models seldom need. Calls may still use them: messages name them where they help.
  const unlisted = ["budget", "max_files", "max_results", "max_size", "max_line_length", "start_column", "encoding"];
  const listed = Object.entries(properties).filter(([name]) => !unlisted.includes(name));
  // Parameters whose names say everything.
  const plain = "offset start_line end_line path include_hidden is_regex until staged".split(" ");
  const short = listed.map(([name, { type, enum: choices, description }]: [string, JsonProperty]) => [
    name,
    { ...(choices ? { enum: choices } : { type }), ...(plain.includes(name) ? {} : { description }) },
  ]);
  return { type: "object", properties: Object.fromEntries(short), ...(required ? { required } : {}) };
}

const pageTools: readonly PageTool[] = [nextPageTool, recallPageTool, budgetStatusTool];

export interface Answering extends Pick<McpSession, "session" | "takeNotice">, Partial<Pick<McpSession, "original">> {
  readonly commands?: CommandPlace | undefined;
  readonly recorder?: ServerRecorder | undefined;
}

/** Runs a tool of the session, or one that returns pages. */
export async function answerCall(
  { session, takeNotice, original, commands, recorder }: Answering,
  call: {
    readonly pageTools?: readonly PageTool[] | undefined;
    readonly format?: PageFormat | undefined;
    readonly name: string;
    readonly args: ToolArguments;
    readonly signal: AbortSignal;
  },
): Promise<Answer> {
  const { name, args, signal, format = "json", pageTools: served = pageTools } = call;
  const pageTool = served.find((tool) => tool.name === name);
  const answer = await settle(
    async () =>
      pageTool === undefined
        ? session.call(name, args, { signal })
        : pageTool.run(session, args, { signal, format, original, commands }),
    format,
  );
  recorder?.add({ results: 1 });
  const notice = takeNotice();
  if (notice === undefined) return answer;
  const envelope = { ...answer.envelope, notice };
  return { envelope, text: format === "text" ? `${answer.text}\n[${notice}]` : JSON.stringify(envelope) };
}
