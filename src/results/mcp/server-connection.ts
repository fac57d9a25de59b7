/** Connections to the servers that `mcp wrap` puts behind its proxy: a process on stdio, or an address over HTTP. Both
 *  speak in lines, one message each. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { ContextError } from "../../core/errors.ts";
import { formatNumber, isPlainObject, messageOf, printable, printableLines } from "../../core/text/index.ts";
import type { McpServer } from "../../rules/index.ts";
import { keepRunning } from "./keep-running.ts";
import {
  createLineBuffer,
  createLineChannel,
  type LineEnds,
  maxLineBytes,
  readMessageLines,
  writeLine,
} from "./line-stream.ts";
import { parseLine, type RpcMessage, readEnds, renderAnswer } from "./rpc-message.ts";
import type { ServerRecorder } from "./running-servers.ts";

export interface ServerConnection {
  /** The messages of the server. They end when the server ends. */
  readonly lines: AsyncIterable<Buffer>;
  send(line: string | Buffer): Promise<void>;
  /** The client is gone. The server may finish what it does. */
  end(): void;
  kill(signal: NodeJS.Signals): void;
  /** Resolves with the exit code. An address has none and counts as 0. */
  readonly ended: Promise<number>;
}

export interface ConnectOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  log(text: string): void;
  readonly recorder?: ServerRecorder | undefined;
}

/** Starts the program or prepares the requests. Throws if the program cannot be started. */
export async function connectServer(server: McpServer, options: ConnectOptions): Promise<ServerConnection> {
  if ("url" in server) return connectHttp(server);
  return keepRunning(() => startProcess(server, options), { ...options, name: server.name });
}

type StdioServer = Extract<McpServer, { readonly command: unknown }>;
type HttpServer = Extract<McpServer, { readonly url: string }>;

/** Its lines throw a `ContextError` if the program sends a line that nobody can read. The program is then ended. */
async function startProcess(server: StdioServer, options: ConnectOptions): Promise<ServerConnection> {
  const child = await spawnServer(server, options);
  const stdout = child.stdout!;
  const stdin = child.stdin!;
  const exit = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  // Processes that the server started may keep the pipes open. The end of stdin tells them to end.
  void exit.then(() => stdin.end());
  const errorsPassed = passErrors(child.stderr!);
  return {
    lines: linesUntilClosed(child, { ...options, name: server.name }),
    send: (line) => writeLine(stdin, line),
    end: () => void stdin.end(),
    // Processes that the server left may keep its stdout open after it is gone, and no signal would reach them.
    kill: (signal) => void (child.kill(signal) || stdout.destroy()),
    ended: exit.then(async ([code, signal]) => {
      // Processes that the server left may keep its stderr open.
      await Promise.race([errorsPassed, sleep(500, undefined, { ref: false })]);
      child.stderr?.destroy();
      return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
    }),
  };
}

/** Shows what the server writes for people. Its control characters become visible escapes: they could change what a
 *  terminal shows, or what is in the clipboard. */
async function passErrors(stderr: Readable): Promise<void> {
  try {
    for await (const text of stderr.setEncoding("utf8") as AsyncIterable<string>) {
      await writeLine(process.stderr, printableLines(text.replaceAll("\r\n", "\n")));
    }
  } catch {
    // It was closed here.
  }
}

/** Reading a stream that was destroyed on purpose is not an error. */
async function* linesUntilClosed(
  child: ChildProcess,
  { name, log }: Pick<ConnectOptions, "log"> & { readonly name: string },
): AsyncGenerator<Buffer> {
  const stream = child.stdout!;
  const replace = (ends: LineEnds): string | undefined => {
    const { isRequest, id } = readEnds(ends);
    const message = `The server "${name}" sent a line of more than ${formatNumber(maxLineBytes)} bytes. It is left out.`;
    log(message);
    if (isRequest) return undefined;
    if (id !== undefined) return renderAnswer(id, { error: { code: -32_000, message } });
    const problem = `a line has more than ${formatNumber(maxLineBytes)} bytes, and its id is not at an end`;
    throw new ContextError("unreadable_input", problem);
  };
  try {
    yield* readMessageLines(stream, { replace });
  } catch (error) {
    if (error instanceof ContextError) {
      child.kill("SIGKILL");
      throw error;
    }
    if (!stream.destroyed) throw error;
  }
}

async function spawnServer(
  { command: [command, ...args], env: own, cwd: folder }: StdioServer,
  { cwd, env }: ConnectOptions,
): Promise<ChildProcess> {
  const child = spawn(command, args, {
    cwd: folder ?? cwd,
    env: { ...env, ...own },
    stdio: ["pipe", "pipe", "pipe"],
  });
  // Its exit shows that a server is gone.
  child.stdin?.on("error", () => {});
  try {
    await once(child, "spawn");
    return child.on("error", () => {});
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code === "ENOENT" ? "it was not found" : messageOf(cause);
    throw new ContextError("usage", `the server ${command} cannot be started: ${reason}`, {
      hint: "Name a program after --, as in plimsoll mcp wrap -- npx -y SERVER.",
      cause,
    });
  }
}

/** Speaks Streamable HTTP: each message is a request, and its answers are JSON or a stream of events. A second stream
 *  carries what the server sends on its own. */
function connectHttp(server: HttpServer): ServerConnection {
  const received = createLineChannel();
  const closing = new AbortController();
  const state: HttpState = { server, signal: closing.signal, receive: received.push };
  const underWay = new Set<Promise<void>>();
  let notified: Promise<void> = Promise.resolve();
  let finish: (code: number) => void = () => {};
  const ended = new Promise<number>((resolve) => {
    finish = resolve;
  });
  const close = async (): Promise<void> => {
    if (closing.signal.aborted) return;
    await Promise.race([Promise.all(underWay), sleep(10_000, undefined, { ref: false })]);
    closing.abort();
    if (state.sessionId !== undefined) {
      // Tells the server that the session is over.
      const [headers, signal] = [createHeaders(state, "*/*"), AbortSignal.timeout(1_000)];
      await fetch(server.url, { method: "DELETE", headers, signal }).catch(() => {});
    }
    received.end();
    finish(0);
  };
  return {
    lines: received.lines,
    ended,
    end: () => void close(),
    kill: () => void close(),
    async send(line) {
      const body = String(line).trim();
      const message = parseLine(Buffer.from(body))?.messages[0];
      if (message === undefined) return;
      // A request must not overtake the notification before it.
      await notified;
      const exchanged = exchange(state, body, message).finally(() => underWay.delete(exchanged));
      underWay.add(exchanged);
      if (message.id !== undefined && message.method !== undefined) return;
      notified = exchanged;
      if (message.method !== "notifications/initialized") return;
      if (state.handshake !== undefined) state.handshake.initialized = body;
      void exchanged.then(() => listen(state));
    },
  };
}

interface HttpState {
  readonly server: HttpServer;
  readonly signal: AbortSignal;
  receive(line: string | Buffer): Promise<void>;
  sessionId?: string | undefined;
  version?: string | undefined;
  /** The handshake, to repeat it if the server has forgotten the session. */
  handshake?: { readonly line: string; initialized?: string };
}

function createHeaders({ server, sessionId, version }: HttpState, accept: string): Record<string, string> {
  return {
    ...server.headers,
    accept,
    ...(sessionId === undefined ? {} : { "mcp-session-id": sessionId }),
    ...(version === undefined ? {} : { "mcp-protocol-version": version }),
  };
}

function post(state: HttpState, body: string): Promise<Response> {
  const headers = createHeaders(state, "application/json, text/event-stream");
  return fetch(state.server.url, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body,
    signal: state.signal,
  });
}

/** Sends a message and passes on what comes back. A request is always answered, if need be with an error. */
async function exchange(state: HttpState, body: string, message: RpcMessage): Promise<void> {
  const { id, method } = message;
  let isAnswered = id === undefined || method === undefined;

  const pass = async (line: Buffer): Promise<void> => {
    if (!isAnswered) {
      // Only results are that long, and parsing one takes a while.
      const isLong = line.length > 1_048_576;
      isAnswered =
        isLong || (parseLine(line)?.messages ?? []).some((each) => each.id === id && each.method === undefined);
    }
    await state.receive(line);
  };
  try {
    if (method === "initialize") {
      state.handshake = { line: body };
      await greet(state, body, pass);
    } else await readAnswers(await checkStatus(await postAgain(state, body)), pass);
    if (!isAnswered) throw new Error("the answer ended too early");
  } catch (error) {
    if (isAnswered) return;
    const { cause } = error as { readonly cause?: unknown };
    const reason = isPlainObject(cause) && typeof cause.code === "string" ? cause.code : messageOf(error);
    const problem = `The server at ${new URL(state.server.url).origin} cannot be reached: ${reason}`;
    await state.receive(renderAnswer(id!, { error: { code: -32_000, message: problem } }));
  }
}

async function greet(state: HttpState, line: string, pass: (line: Buffer) => Promise<void>): Promise<void> {
  [state.sessionId, state.version] = [undefined, undefined];
  const response = await checkStatus(await post(state, line));
  state.sessionId = response.headers.get("mcp-session-id") ?? undefined;
  await readAnswers(response, async (answer) => {
    const version = parseLine(answer)?.messages[0]?.result?.protocolVersion;
    if (typeof version === "string") state.version = version;
    await pass(answer);
  });
}

/** Greets the server again if it has forgotten the session, as after a restart. The protocol wants 404 then, but some
 *  servers answer 400. */
async function postAgain(state: HttpState, body: string): Promise<Response> {
  const response = await post(state, body);
  const { handshake } = state;
  const mayHaveForgotten = [400, 404].includes(response.status) && state.sessionId !== undefined;
  if (!mayHaveForgotten || handshake === undefined) return response;
  await response.body?.cancel();
  await greet(state, handshake.line, async () => {});
  if (handshake.initialized !== undefined) await (await post(state, handshake.initialized)).body?.cancel();
  return post(state, body);
}

/** Receives what the server sends on its own, if it offers that. */
async function listen(state: HttpState): Promise<void> {
  const { signal, server, receive } = state;
  for (let pauseMs = 1_000; !signal.aborted; pauseMs = Math.min(pauseMs * 2, 30_000)) {
    try {
      const response = await fetch(server.url, { headers: createHeaders(state, "text/event-stream"), signal });
      if (!response.ok) {
        await response.body?.cancel();
        return;
      }
      await readAnswers(response, receive);
    } catch {
      // The server is gone for now, or the connection was closed here.
    }
    await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => {});
  }
}

async function checkStatus(response: Response): Promise<Response> {
  if (response.ok) return response;
  const text = printable((await readStart(response).catch(() => "")).slice(0, 200));
  const hint = response.status === 401 ? "; put a token into its headers, because wrap cannot sign in" : "";
  throw new Error(`it answered ${response.status}${text === "" ? "" : ` (${text})`}${hint}`);
}

async function readStart({ body }: Response): Promise<string> {
  for await (const part of (body ?? []) as unknown as AsyncIterable<Uint8Array>) return Buffer.from(part).toString();
  return "";
}

/** Passes each message of an answer as one line. */
async function readAnswers(response: Response, pass: (line: Buffer) => Promise<void>): Promise<void> {
  if (response.body === null) return;
  const body = response.body as unknown as AsyncIterable<Uint8Array>;
  if (response.headers.get("content-type")?.startsWith("text/event-stream") === true) {
    for await (const data of readEvents(body)) await pass(data);
    return;
  }
  const received = createLineBuffer();
  let length = 0;
  for await (const part of body) {
    length += part.length;
    if (length > maxLineBytes) throw tooLong();
    received.add(Buffer.from(part));
  }
  const text = joinLine(received.take());
  if (text.length > 1) await pass(text);
}

/** Yields the data of each event. */
async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  async function* chunks(): AsyncGenerator<Buffer> {
    for await (const part of body) yield Buffer.from(part.buffer, part.byteOffset, part.byteLength);
  }
  let data: Buffer[] = [];
  let length = 0;
  const replace = (): never => {
    throw tooLong();
  };
  for await (const line of readMessageLines(chunks(), { replace })) {
    if (/^\r?\n$/.test(line.toString("latin1", 0, 2))) {
      if (data.length > 0) yield joinLine(Buffer.concat(data));
      [data, length] = [[], 0];
    } else if (line.toString("latin1", 0, 5) === "data:") {
      data.push(line.subarray(line[5] === 0x20 ? 6 : 5));
      length += line.length;
      if (length > maxLineBytes) throw tooLong();
    }
  }
  if (data.length > 0) yield joinLine(Buffer.concat(data));
}

function tooLong(): Error {
  return new Error(`it sent a message of more than ${formatNumber(maxLineBytes)} bytes`);
}

/** Line breaks in JSON are only between its words, so spaces can replace them. */
function joinLine(json: Buffer): Buffer {
  const bytes = Buffer.concat([json, Buffer.from("\n")]);
  for (let at = 0; at < bytes.length - 1; at += 1) if (bytes[at] === 0x0a || bytes[at] === 0x0d) bytes[at] = 0x20;
  return bytes;
}
