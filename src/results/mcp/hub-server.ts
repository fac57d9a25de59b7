/** One of several servers behind `mcp wrap`: its greeting, its lists, and the requests that are under way. */
import { setTimeout as sleep } from "node:timers/promises";
import { elementsOf, isPlainObject, memberOf, messageOf } from "../../core/text/index.ts";
import { parseRpcMessages, type RpcMessage, type RpcObject, renderAnswer, replaceAt } from "./rpc-message.ts";
import type { ServerConnection } from "./server-connection.ts";

export interface HubServer {
  readonly name: string;
  /** Resolves when the server was greeted or has failed. */
  readonly settled: Promise<void>;
  /** Resolves with the exit code. */
  readonly ended: Promise<number>;
  /** Returns the server's answer to the greeting. */
  greeting(): RpcObject | undefined;
  greet(params: string): Promise<void>;
  /** Reports once that the server has not answered yet. */
  reportLate(): void;
  /** From now on, changes of the server's lists are reported to the client. */
  clientIsGreeted(): void;
  /** Whether the server runs and has the capability of the method. */
  offers(method: string): boolean;
  /** Sends a request of our own. Returns nothing if the server does not answer in time. */
  ask(method: string, params?: string): Promise<RpcMessage | undefined>;
  /** Returns the JSON of all elements. */
  list(method: string, key: string): Promise<string[]>;
  /** Sends a request of the client. If the server refuses it, the others are asked. */
  forward(id: string, text: string, others?: readonly HubServer[]): Promise<void>;
  /** Passes an answer or a notification of the client on if it is for this server. */
  take(message: RpcMessage): void;
  end(): void;
  kill(signal: NodeJS.Signals): void;
}

export interface HubServerOptions {
  readonly name: string;
  /** Among the servers. */
  readonly index: number;
  /** How long the server may take for a list. */
  readonly listMs: number;
  /** Sends a line to the client. */
  emit(line: string | Buffer): Promise<void>;
  connect(): Promise<ServerConnection>;
  /** Called once with what is wrong with the server. */
  fail(reason: string): void;
  /** Called with objects that may name a resource or a task of the server. */
  learn(value: unknown): void;
}

/** A server whose list never ends must not fill the memory, or keep the client waiting. */
const maxElements = 10_000;

export function createHubServer(options: HubServerOptions): HubServer {
  const [settled, opened] = [createGate(), createGate()];
  const state: ServerState = {
    ...options,
    isEnding: false,
    isLate: false,
    isClientGreeted: false,
    lastId: 0,
    asked: new Map(),
    pending: new Map(),
    settled: settled.passed,
    settle: settled.open,
    opened: opened.passed,
    open: opened.open,
  };
  const ended = run(state);
  return {
    name: options.name,
    settled: state.settled,
    ended,
    greeting: () => state.greeting,
    greet: (params) => greet(state, params),
    reportLate() {
      if (state.greeting !== undefined || state.problem !== undefined || state.isLate) return;
      state.isLate = true;
      options.fail("has not answered yet");
    },
    clientIsGreeted() {
      state.isClientGreeted = true;
    },
    offers: (method) => isAlive(state) && hasCapability(state.greeting, method),
    ask: (method, params) => ask(state, method, { params, maxMs: options.listMs }),
    list: (method, key) => listAll(state, method, key),
    async forward(id, text, others = []) {
      if (!isAlive(state)) return refuseRequest(state, id);
      state.pending.set(id, { text, others });
      await send(state, text);
    },
    take(message) {
      const { method, cancels } = message;
      if (method === undefined || method === "notifications/progress") return passAnswer(state, message);
      if (method === "notifications/initialized") state.initializedText = message.text();
      const isExpected = cancels === undefined ? state.greeting !== undefined : state.pending.delete(cancels);
      if (isExpected) void send(state, message.text());
    },
    end() {
      state.isEnding = true;
      state.connection?.end();
      // A program that has not even greeted may not notice the end of its stdin.
      if (state.greeting === undefined) state.connection?.kill("SIGTERM");
    },
    kill(signal) {
      state.isEnding = true;
      state.connection?.kill(signal);
    },
  };
}

interface ServerState extends HubServerOptions {
  connection?: ServerConnection;
  greeting?: RpcObject | undefined;
  problem?: string;
  initializedText?: string;
  isEnding: boolean;
  isLate: boolean;
  isClientGreeted: boolean;
  lastId: number;
  /** Our own requests without an answer. */
  readonly asked: Map<string, (answer: RpcMessage | undefined) => void>;
  /** Requests of the client without an answer. */
  readonly pending: Map<string, { readonly text: string; readonly others: readonly HubServer[] }>;
  readonly settled: Promise<void>;
  /** Whether it is connected is known. */
  readonly opened: Promise<void>;
  settle(): void;
  open(): void;
}

function createGate(): { readonly passed: Promise<void>; readonly open: () => void } {
  let open: () => void = () => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}

async function run(state: ServerState): Promise<number> {
  try {
    state.connection = await state.connect();
  } catch (error) {
    await lose(state, `did not start: ${messageOf(error)}`);
    return 1;
  }
  state.open();
  const { lines, ended, end } = state.connection;
  if (state.isEnding) end();
  for await (const line of lines) {
    for (const message of parseRpcMessages(line)) await take(state, message, line);
  }
  const code = await ended;
  if (state.problem === undefined) await lose(state, `has ended with exit code ${code}`);
  return code;
}

function isAlive({ connection, problem }: ServerState): boolean {
  return connection !== undefined && problem === undefined;
}

async function lose(state: ServerState, reason: string): Promise<void> {
  const { asked, pending, isEnding, fail } = state;
  state.problem = reason;
  if (!isEnding) fail(reason);
  for (const answer of asked.values()) answer(undefined);
  state.open();
  state.settle();
  const ids = [...pending.keys()];
  pending.clear();
  for (const id of ids) await refuseRequest(state, id);
  await reportLists(state);
}

function refuseRequest({ name, problem = "is gone", emit }: ServerState, id: string): Promise<void> {
  return emit(renderAnswer(id, { error: { code: -32_000, message: `The server "${name}" ${problem}.` } }));
}

/** Reports that everything the server offers has changed, because it has come or is gone. */
async function reportLists({ isClientGreeted, isEnding, greeting, emit }: ServerState): Promise<void> {
  if (!isClientGreeted || isEnding) return;
  for (const kind of ["tools", "prompts", "resources"]) {
    if (!hasCapability(greeting, kind)) continue;
    await emit(`{"jsonrpc":"2.0","method":"notifications/${kind}/list_changed"}\n`);
  }
}

/** Methods without a capability of their own count as offered. */
function hasCapability(greeting: RpcObject | undefined, method: string): boolean {
  if (!isPlainObject(greeting?.capabilities)) return false;
  const [kind = ""] = method.split("/");
  return !["tools", "prompts", "resources", "logging", "tasks"].includes(kind) || kind in greeting.capabilities;
}

async function greet(state: ServerState, params: string): Promise<void> {
  await state.opened;
  if (state.problem !== undefined) return;
  const answer = await ask(state, "initialize", { params });
  if (answer === undefined) return;
  state.greeting = answer.result;
  if (state.greeting === undefined) {
    const { error } = answer.value as { readonly error?: { readonly message?: unknown } };
    const reason = String(error?.message ?? "it sent no result").replace(/\.$/, "");
    return lose(state, `refused the greeting: ${reason}`);
  }
  state.settle();
  if (state.initializedText !== undefined) await send(state, state.initializedText);
  await reportLists(state);
}

async function send(state: ServerState, text: string): Promise<void> {
  if (isAlive(state)) await state.connection?.send(text.endsWith("\n") ? text : `${text}\n`);
}

/** Without `maxMs`, it waits as long as the server runs. */
async function ask(
  state: ServerState,
  method: string,
  { params = "{}", maxMs }: { readonly params?: string | undefined; readonly maxMs?: number },
): Promise<RpcMessage | undefined> {
  state.lastId += 1;
  const id = JSON.stringify(`plimsoll:${state.lastId}`);
  const answer = new Promise<RpcMessage | undefined>((resolve) => state.asked.set(id, resolve));
  await send(state, `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`);
  const found = await (maxMs === undefined ? answer : Promise.race([answer, sleep(maxMs, null, { ref: false })]));
  state.asked.delete(id);
  return found ?? undefined;
}

async function listAll(state: ServerState, method: string, key: string): Promise<string[]> {
  const elements: string[] = [];
  const deadline = performance.now() + state.listMs;
  let cursor: unknown;
  do {
    const params = cursor === undefined ? "{}" : JSON.stringify({ cursor });
    const answer = await ask(state, method, { params, maxMs: Math.max(0, deadline - performance.now()) });
    if (answer?.result === undefined) break;
    const text = answer.text();
    const range = memberOf(text, memberOf(text, 0, "result")!.value.start, key);
    if (range !== undefined) {
      const found = elementsOf(text, range.value.start).slice(0, maxElements - elements.length);
      for (const { start, end } of found) elements.push(text.slice(start, end));
    }
    cursor = answer.result.nextCursor ?? undefined;
  } while (cursor !== undefined && elements.length < maxElements && performance.now() < deadline);
  return elements;
}

/** Passes a message of the server on. Only its own requests are changed: they get ids that no other server uses. */
async function take(state: ServerState, message: RpcMessage, line: Buffer): Promise<void> {
  const { id, method, cancels, params } = message;
  const { index } = state;
  if (method === undefined) return takeAnswer(state, message, line);
  const text = message.text();
  if (id !== undefined) {
    const token = isPlainObject(params?._meta) ? params._meta.progressToken : undefined;
    const packed = replaceAt(text, ["id"], pack(index, id));
    if (token === undefined) return state.emit(packed);
    return state.emit(replaceAt(packed, ["params", "_meta", "progressToken"], pack(index, JSON.stringify(token))));
  }
  if (!state.isClientGreeted && method.endsWith("/list_changed")) return;
  state.learn(params);
  await state.emit(cancels === undefined ? text : replaceAt(text, ["params", "requestId"], pack(index, cancels)));
}

async function takeAnswer(state: ServerState, message: RpcMessage, line: Buffer): Promise<void> {
  const { id = "", result } = message;
  const own = state.asked.get(id);
  if (own !== undefined) return own(message);
  const request = state.pending.get(id);
  // The client has cancelled it.
  if (request === undefined) return;
  state.pending.delete(id);
  const [next, ...others] = request.others;
  if (result === undefined && next !== undefined) return next.forward(id, request.text, others);
  state.learn(result);
  state.learn(result?.task);
  const isList = line[0] === "[".charCodeAt(0);
  await state.emit(isList ? message.text() : line);
}

/** Passes the client's answer, or its progress, if it is about a request of this server. */
function passAnswer(state: ServerState, message: RpcMessage): void {
  const isAnswer = message.method === undefined;
  const path = isAnswer ? ["id"] : ["params", "progressToken"];
  const packed = isAnswer ? message.id : JSON.stringify(message.params?.progressToken);
  const [, index, original] = /^"plimsoll\/(\d+)\/([\s\S]*)"$/.exec(packed ?? "") ?? [];
  if (Number(index) !== state.index) return;
  void send(state, replaceAt(message.text(), path, JSON.parse(`"${original}"`) as string));
}

/** Servers choose the ids of their own requests, so two may choose the same one. The client sees ids that contain the
 *  server's number. They need no table, so nothing is left over if a client never answers. */
function pack(index: number, id: string): string {
  return JSON.stringify(`plimsoll/${index}/${id}`);
}
