import type { Writable } from "node:stream";
import { ContextError, usageError } from "../../core/errors.ts";
import { messageOf } from "../../core/text/index.ts";
import type { McpServer } from "../../rules/index.ts";
import type { PageFormat, PageLimit, Session } from "../session/index.ts";
import { findClientLimit, findToolName } from "./client-limits.ts";
import type { ServedPlace } from "./create-host.ts";
import { hideTools, realCall } from "./lazy-tools.ts";
import { createLineProxy, type LineProxy } from "./line-proxy.ts";
import { readMessageLines, writeLine } from "./line-stream.ts";
import { openMcpSession, patience } from "./open-session.ts";
import { refuseLongLine } from "./rpc-message.ts";
import { recordServer, type ServerRecorder } from "./running-servers.ts";
import { type ConnectOptions, connectServer, type ServerConnection } from "./server-connection.ts";
import { createServerHub, type ServerHub } from "./server-hub.ts";
import { openServerStore, type ServerStore } from "./server-store.ts";
import { createWrapIntake, type WrapIntake } from "./wrap-intake.ts";

export interface WrapOptions extends Omit<ServedPlace, "root" | "secrets">, ConnectOptions {
  /** One server keeps the names of its tools. Of several servers, each tool has its server's name in front. */
  readonly servers: readonly [McpServer, ...McpServer[]];
  /** The name of this server in the client. */
  readonly shownAs?: string | undefined;
  /** Whether their tools are behind fixed ones. */
  readonly isLazy?: boolean | undefined;
  /** Whether results leave out what the client already has. */
  readonly hasIntake?: boolean | undefined;
  /** Our own version, which the client of several servers sees. */
  readonly version: string;
  readonly pageLimit?: PageLimit | undefined;
  readonly format: PageFormat;
  readonly stdin: AsyncIterable<Buffer>;
  readonly stdout: Writable;
  /** Registers what to do with signals once the server runs. */
  onStart(kill: (signal: NodeJS.Signals) => void): void;
}

/** Runs servers behind a proxy that pages their large results. Returns the exit code, which is the server's own if there
 *  is one. */
export async function wrapServer(options: WrapOptions): Promise<number> {
  const { storeFile, sessionId, isNamed, counter, budget, format, log } = options;
  let clientName: string | undefined;
  const pageLimit = (): PageLimit => options.pageLimit ?? findClientLimit(clientName, budget);
  const kept = await openServerStore({ file: storeFile, upkeep: options.upkeep, log });
  const name = options.servers.map((server) => server.name).join("+");
  const recorder = recordServer(kept.store, { kind: "wrap", name, cwd: options.cwd });
  const { session, takeNotice, original, close } = await openMcpSession({
    id: sessionId,
    isNamed,
    conversation: options.conversation,
    kept,
    counter,
    budget,
    pageLimit,
    format,
    nextPageName: () => proxy.ownName("next_page"),
  });
  const hub = options.servers.length === 1 ? undefined : connectAll({ ...options, recorder });
  const takeNotices = (): string | undefined => {
    const notices = [takeNotice(), hub?.takeNotice()].filter((notice) => notice !== undefined);
    return notices.length === 0 ? undefined : notices.join(" ");
  };
  const recallName = () => proxy.ownName("recall");
  const intake = options.hasIntake === true ? await openIntake(session, { ...options, kept, recallName }) : undefined;

  const proxy: LineProxy = createLineProxy({
    session,
    counter,
    pageLimit,
    format,
    patience,
    takeNotice: takeNotices,
    shownName: (tool) => findToolName(tool, clientName, options.shownAs),
    log,
    intake,
    original,
    recorder,
    // Claude Code moves large results into a file by itself. A short preview then serves it better than a page.
    isPreviewed: () => {
      const isClaudeCode = clientName?.toLowerCase().startsWith("claude-code") ?? false;
      return isClaudeCode && format === "text" && options.pageLimit === undefined;
    },
    ...(options.isLazy === true ? { realCall } : {}),
    clientIs: (name) => {
      clientName = name;
    },
  });
  try {
    const server = hub ?? (await connectServer(options.servers[0], { ...options, recorder }));
    const names = options.servers.map(({ name }) => cleanName(name));
    // Whose tools are hidden.
    const about = names.length === 1 ? `the server ${names[0]}` : `the servers ${names.join(", ")}`;
    const exitCode = await runBehind(proxy, options.isLazy === true ? hideTools(server, about) : server, options);
    await proxy.settled();
    return exitCode;
  } catch (error) {
    recorder.failed(messageOf(error));
    throw error;
  } finally {
    await close();
    await recorder.close();
    await kept.store.close();
  }
}

function openIntake(
  session: Session,
  { counter, kept, recallName }: Pick<WrapOptions, "counter"> & { readonly kept: ServerStore; recallName(): string },
): Promise<WrapIntake> {
  return createWrapIntake({
    sessionId: session.id,
    counter,
    store: kept.store,
    recallName,
    async conversation() {
      await session.refresh();
      const { lifetime, delivered } = session.forModel();
      return lifetime - delivered;
    },
  });
}

function connectAll(options: WrapOptions & { readonly recorder: ServerRecorder }): ServerHub {
  const { servers, version, isLazy = false, log, recorder } = options;
  const names = servers.map(({ name }) => cleanName(name));
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) {
    throw usageError(
      `two servers would both have the name ${twice}`,
      "Give one of them another name, or choose the servers with --server.",
    );
  }
  return createServerHub({
    servers: servers.map((server) => ({
      name: cleanName(server.name),
      connect: () => connectServer(server, options),
    })),
    version,
    isLazy,
    log,
    recorder,
  });
}

/** Has no underscore, so that the first one in a tool's name ends its server's name. Clients accept no other
 *  characters. */
function cleanName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9-]+/g, "-");
}

async function runBehind(proxy: LineProxy, server: ServerConnection, options: WrapOptions): Promise<number> {
  const { stdin, stdout, log } = options;
  options.onStart(server.kill);
  const answers = passToServer(proxy, { stdin, stdout, server, log });
  const writings = new Set<Promise<void>>();
  for await (const line of server.lines) {
    await new Promise<void>((resolve, reject) => {
      const passing = proxy.fromServer(line, resolve);
      const writing = passing.then((text) => writeLine(stdout, text)).finally(() => writings.delete(writing));
      writings.add(writing);
      writing.then(resolve, reject);
    });
  }
  await Promise.all(writings);
  const exitCode = await server.ended;
  await Promise.all(answers);
  return exitCode;
}

/** Sends the answers of running calls. */
function passToServer(
  proxy: LineProxy,
  streams: Pick<WrapOptions, "stdin" | "stdout" | "log"> & {
    readonly server: ServerConnection;
  },
): Set<Promise<void>> {
  const { stdin, stdout, server, log } = streams;
  const underWay = new Set<Promise<void>>();
  const send = async (answer: Promise<string | undefined>): Promise<void> => {
    const line = await answer;
    if (line !== undefined) await writeLine(stdout, line);
  };
  const pump = async (): Promise<void> => {
    for await (const line of readMessageLines(stdin, { replace: refuseLongLine(stdout, log) })) {
      const { forward, answers } = proxy.fromClient(line);
      for (const answer of answers) {
        const sending = send(answer).finally(() => underWay.delete(sending));
        underWay.add(sending);
      }
      if (forward === undefined) continue;
      await server.send(forward);
    }
  };
  // A client that no longer reads is gone, even if its other end is still open.
  stdout.on("error", () => server.end());
  void pump()
    .catch((error: unknown) => (error instanceof ContextError ? log(error.message) : undefined))
    .then(() => server.end());
  return underWay;
}
