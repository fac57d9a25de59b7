import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";
import type { LedgerOptions } from "../../budget/index.ts";
import { ContextError } from "../../errors.ts";
import type { PageLimit } from "../../session/index.ts";
import { messageOf } from "../../text/index.ts";
import type { Counter } from "../../tokens/index.ts";
import { limitOfClient } from "../client-limits.ts";
import { readLines, writeLine } from "../lines/line-stream.ts";
import { openMcpSession, patience } from "../open-session.ts";
import { openServerStore } from "../server-store.ts";
import { createLineProxy, type LineProxy } from "./line-proxy.ts";

export interface WrapOptions {
  /** The server and its arguments. */
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  readonly counter: Counter;
  readonly budget: LedgerOptions;
  /** Undefined where results are kept in memory only. */
  readonly storeFile: string | undefined;
  readonly sessionId: string;
  readonly goesOn: boolean;
  readonly pageLimit?: PageLimit | undefined;
  readonly stdin: AsyncIterable<Buffer>;
  readonly stdout: Writable;
  /** Tells what to do with signals once the server runs. */
  onStart(kill: (signal: NodeJS.Signals) => void): void;
  log(text: string): void;
}

/** Runs a server behind a proxy that pages its large results. Gives the code to exit with: the server's own. */
export async function wrapServer(options: WrapOptions): Promise<number> {
  const { storeFile, sessionId, goesOn, counter, budget, log } = options;
  let clientName: string | undefined;
  const pageLimit = (): PageLimit => options.pageLimit ?? limitOfClient(clientName);
  const kept = await openServerStore({ file: storeFile, consequence, log });
  const { session, takeNotice, close } = await openMcpSession({
    id: sessionId,
    goesOn,
    kept,
    counter,
    budget,
    pageLimit,
    nextPageName: () => proxy.nextPageName(),
  });
  const proxy: LineProxy = createLineProxy({
    ...{ session, counter, pageLimit, patience, takeNotice, log },
    isKept: () => kept.problem() === undefined,
    clientIs: (name) => {
      clientName = name;
    },
  });
  try {
    const exitCode = await runBehind(proxy, options);
    await proxy.settled();
    return exitCode;
  } finally {
    await close();
    await kept.store.close();
  }
}

const consequence = "Results pass as they came, without pages.";

async function runBehind(proxy: LineProxy, options: WrapOptions): Promise<number> {
  const { stdin, stdout } = options;
  const child = await start(options);
  const server = child.stdout!;
  // What the server has left behind may hold its stdout after it is gone, and no signal would reach that.
  options.onStart((signal) => void (child.kill(signal) || server.destroy()));
  const ended = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  // What the server started itself may still hold the pipes: the end of stdin tells it to go.
  void ended.then(() => child.stdin?.end());
  const answers = passToServer(proxy, { stdin, stdout, server: child.stdin! });
  await passToClient(proxy, server, stdout);
  const [code, signal] = await ended;
  await Promise.all(answers);
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}

async function start({ command: [command, ...args], cwd }: WrapOptions): Promise<ChildProcess> {
  const child = spawn(command, args, { cwd, stdio: ["pipe", "pipe", "inherit"] });
  // A server that has gone is noticed by its exit.
  child.stdin?.on("error", () => {});
  try {
    await once(child, "spawn");
    return child.on("error", () => {});
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code === "ENOENT" ? "it is not there" : messageOf(cause);
    throw new ContextError("usage", `the server ${command} cannot be started: ${reason}`, {
      hint: "Name a program behind --, as in plimsoll mcp wrap -- npx -y SERVER.",
      cause,
    });
  }
}

interface ClientStreams {
  readonly stdin: AsyncIterable<Buffer>;
  readonly stdout: Writable;
  readonly server: Writable;
}

/** Gives the answers that are under way. */
function passToServer(proxy: LineProxy, { stdin, stdout, server }: ClientStreams): Set<Promise<void>> {
  const underWay = new Set<Promise<void>>();
  const send = async (answer: Promise<string | undefined>): Promise<void> => {
    const line = await answer;
    if (line !== undefined) await writeLine(stdout, line);
  };
  const pump = async (): Promise<void> => {
    for await (const line of readLines(stdin)) {
      const { forward, answers } = proxy.fromClient(line);
      for (const answer of answers) {
        const sending = send(answer).finally(() => underWay.delete(sending));
        underWay.add(sending);
      }
      if (forward !== undefined) await writeLine(server, forward);
    }
  };
  // A client that reads no more is gone, also where its other end is still open.
  stdout.on("error", () => server.end());
  void pump()
    .catch(() => undefined)
    .then(() => server.end());
  return underWay;
}

async function passToClient(proxy: LineProxy, server: Readable, stdout: Writable): Promise<void> {
  const held = new Set<Promise<void>>();
  try {
    for await (const line of readLines(server)) {
      await new Promise<void>((resolve, reject) => {
        const passing = proxy.fromServer(line, resolve);
        const writing = passing.then((text) => writeLine(stdout, text)).finally(() => held.delete(writing));
        held.add(writing);
        writing.then(resolve, reject);
      });
    }
    await Promise.all(held);
  } catch (error) {
    if (!server.destroyed) throw error;
  }
}
