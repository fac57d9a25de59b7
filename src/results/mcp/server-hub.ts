/** Several servers behind one connection. Names of tools and prompts get their server's name in front, lists are joined,
 *  and every other message goes to the server that it is for. A server that fails does not affect the others. */
import { setTimeout as sleep } from "node:timers/promises";
import { isPlainObject, memberOf, messageOf } from "../../core/text/index.ts";
import { createHubServer, type HubServer, type HubServerOptions } from "./hub-server.ts";
import { createLineChannel } from "./line-stream.ts";
import { parseRpcMessages, type RpcMessage, type RpcObject, renderAnswer, replaceAt } from "./rpc-message.ts";
import type { ServerRecorder } from "./running-servers.ts";
import type { ServerConnection } from "./server-connection.ts";

export interface ServerHub extends ServerConnection {
  /** Returns which servers have failed since the last call. */
  takeNotice(): string | undefined;
}

export function createServerHub(options: {
  /** Names have no underscore, so that the first one in a tool's name ends its server's name. */
  readonly servers: readonly Pick<HubServerOptions, "name" | "connect">[];
  readonly version: string;
  /** Whether the client's list of tools is the same, whatever the servers have. */
  readonly isLazy: boolean;
  log(text: string): void;
  readonly recorder?: ServerRecorder | undefined;
}): ServerHub {
  const { servers, version, isLazy, log, recorder } = options;
  const toClient = createLineChannel();
  const notices: string[] = [];
  const routes = createRoutes();
  // Fixed tools need not wait for servers: only the instructions of a slow one are then missing. The servers' tools are
  // read when the model searches them, and a call may take longer than a start. Codex 0.166 sends its first request
  // after one to three seconds, without the tools of servers that are not there yet.
  const patience = isLazy ? { greetingMs: 500, toolsMs: 20_000 } : { greetingMs: 4_000, toolsMs: listMs };
  const members = servers.map(({ name, connect }, index) =>
    createHubServer({
      name,
      index,
      connect,
      listMs,
      emit: toClient.push,
      learn: (value) => routes.learn(index, value),
      fail(reason) {
        const text = `The server "${name}" ${reason}. Its tools are missing; the other servers continue.`;
        notices.push(text);
        recorder?.failed(text);
        log(text);
      },
    }),
  );
  const hub: Hub = { members, routes, version, patience, startedAt: Date.now(), emit: toClient.push, log };
  return {
    lines: toClient.lines,
    async send(line) {
      for (const message of parseRpcMessages(Buffer.from(line))) {
        const { id, method } = message;
        if (method === undefined || id === undefined) {
          for (const member of hub.members) member.take(message);
        } else {
          const request = { ...message, id, method };
          answer(hub, request).catch((error: unknown) =>
            sendError(hub, id, { code: -32_603, message: messageOf(error) }),
          );
        }
      }
    },
    end() {
      for (const member of members) member.end();
    },
    kill(signal) {
      for (const member of members) member.kill(signal);
    },
    ended: Promise.all(members.map(({ ended }) => ended)).then((codes) => {
      toClient.end();
      return codes.every((code) => code !== 0) ? 1 : 0;
    }),
    takeNotice: () => (notices.length === 0 ? undefined : notices.splice(0).join(" ")),
  };
}

interface Hub {
  readonly members: readonly HubServer[];
  readonly routes: ReturnType<typeof createRoutes>;
  readonly version: string;
  /** How long the client waits for its greeting and for the list of tools. */
  readonly patience: { readonly greetingMs: number; readonly toolsMs: number };
  readonly startedAt: number;
  emit(line: string): Promise<void>;
  log(text: string): void;
}

interface ClientRequest extends RpcMessage {
  readonly id: string;
  readonly method: string;
}

async function answer(hub: Hub, request: ClientRequest): Promise<void> {
  const { id, method } = request;
  const list = lists.find((each) => each.method === method);
  if (list !== undefined) return answerList(hub, id, list);
  if (method === "initialize") return greet(hub, request);
  if (method === "ping") return reply(hub, id, {});
  if (method !== "logging/setLevel") return forward(hub, request);
  const params = readParams(request);
  await Promise.all(hub.members.filter((each) => each.offers(method)).map((each) => each.ask(method, params)));
  return reply(hub, id, {});
}

function reply({ emit }: Hub, id: string, result: object): Promise<void> {
  return emit(renderAnswer(id, { result }));
}

function sendError(
  { emit }: Hub,
  id: string,
  error: { readonly code: number; readonly message: string },
): Promise<void> {
  return emit(renderAnswer(id, { error }));
}

function readParams(request: ClientRequest): string {
  const text = request.text();
  const params = memberOf(text, 0, "params");
  return params === undefined ? "{}" : text.slice(params.value.start, params.value.end);
}

/** How long the client waits for its greeting and for its lists if a server is slow to start. Codex gives up after 10
 *  seconds for both. */
const listMs = 8_000;

async function greet(hub: Hub, request: ClientRequest): Promise<void> {
  const { members } = hub;
  const params = readParams(request);
  for (const member of members) void member.greet(params);
  await waitForServers(hub, hub.patience.greetingMs);
  await reply(hub, request.id, joinGreetings(hub));
  for (const member of members) member.clientIsGreeted();
}

/** Waits until every server was greeted or has failed, or until this long after the start. */
async function waitForServers({ members, startedAt }: Hub, maxMs: number): Promise<void> {
  const leftMs = Math.max(0, startedAt + maxMs - Date.now());
  const all = Promise.all(members.map(({ settled }) => settled));
  await Promise.race([all, sleep(leftMs, undefined, { ref: false })]);
}

interface ListMethod {
  readonly method: string;
  readonly key: string;
  /** Whether its elements are called by name. */
  readonly isNamed: boolean;
  /** The fields that must be texts. The first one identifies an element. */
  readonly texts: readonly string[];
}

const lists: readonly ListMethod[] = [
  { method: "tools/list", key: "tools", isNamed: true, texts: ["name"] },
  { method: "prompts/list", key: "prompts", isNamed: true, texts: ["name"] },
  { method: "resources/list", key: "resources", isNamed: false, texts: ["uri", "name"] },
  { method: "resources/templates/list", key: "resourceTemplates", isNamed: false, texts: ["uriTemplate", "name"] },
  { method: "tasks/list", key: "tasks", isNamed: false, texts: ["taskId"] },
];

/** All pages of all servers are one list. */
async function answerList(hub: Hub, id: string, list: ListMethod): Promise<void> {
  const { method, key } = list;
  await waitForServers(hub, method === "tools/list" ? hub.patience.toolsMs : listMs);
  for (const member of hub.members) member.reportLate();
  const found = await Promise.all(
    hub.members.map(async (member, index) => {
      const elements = member.offers(method) ? await member.list(method, key) : [];
      const usable = usableElements(elements, list);
      const left = elements.length - usable.length;
      if (left > 0)
        hub.log(`The server "${member.name}" has ${left} ${key} that no client accepts. They are left out.`);
      return usable.map(({ text, element }) => {
        hub.routes.learn(index, element);
        return list.isNamed ? replaceAt(text, ["name"], JSON.stringify(`${member.name}_${element.name}`)) : text;
      });
    }),
  );
  await hub.emit(`{"jsonrpc":"2.0","id":${id},"result":{"${key}":[${found.flat().join(",")}]}}\n`);
}

/** Clients refuse a whole list for one malformed element, and providers refuse two tools with one name. So such an
 *  element must not cost the other servers theirs. */
function usableElements(elements: readonly string[], { texts, key }: ListMethod) {
  const known = new Set<unknown>();
  return elements.flatMap((text) => {
    const element: unknown = JSON.parse(text);
    if (!isPlainObject(element) || !texts.every((name) => typeof element[name] === "string")) return [];
    if (!["title", "description"].every((name) => ["string", "undefined"].includes(typeof element[name]))) return [];
    if (key === "tools" && !(isPlainObject(element.inputSchema) && element.inputSchema.type === "object")) return [];
    const identity = element[texts[0] ?? ""];
    if (known.has(identity)) return [];
    known.add(identity);
    return [{ text, element }];
  });
}

/** Sends a request to the server that it is for. */
async function forward(hub: Hub, request: ClientRequest): Promise<void> {
  const { id, method, params = {} } = request;
  const text = request.text();
  const named = findName(method, params);
  if (named === undefined) {
    const [first, ...others] = hub.routes.find(method, params, hub.members);
    if (first !== undefined) return first.forward(id, text, others);
    return sendError(hub, id, { code: -32_601, message: `No server offers ${method}` });
  }
  const at = named.name.indexOf("_");
  const member = hub.members.find(({ name }) => name === named.name.slice(0, at));
  if (member !== undefined) {
    return member.forward(id, replaceAt(text, named.path, JSON.stringify(named.name.slice(at + 1))));
  }
  const names = hub.members.map(({ name }) => name).join(", ");
  const message = `Unknown name: ${named.name}. A name here begins with its server and _; the servers are ${names}.`;
  return sendError(hub, id, { code: -32_602, message });
}

/** Returns the name in a request that decides which server gets it. */
function findName(method: string, params: RpcObject): { name: string; path: readonly string[] } | undefined {
  const { name, ref } = params;
  if (method === "tools/call" || method === "prompts/get") return { name: String(name), path: ["params", "name"] };
  if (method !== "completion/complete" || !isPlainObject(ref) || ref.type !== "ref/prompt") return undefined;
  return { name: String(ref.name), path: ["params", "ref", "name"] };
}

/** Learns from lists and results which server has a resource or a task. If two have the same one, the first
 *  server of the file counts. */
function createRoutes() {
  const owners = new Map<string, number>();
  return {
    learn(index: number, value: unknown): void {
      if (!isPlainObject(value)) return;
      for (const key of [value.uri, value.uriTemplate, value.taskId]) {
        if (typeof key === "string" && (owners.get(key) ?? index) >= index) owners.set(key, index);
      }
      for (const oldest of owners.keys()) {
        // Only the newest resources and tasks are remembered.
        if (owners.size <= 10_000) break;
        owners.delete(oldest);
      }
    },
    /** Returns the servers to ask, one after the other until one has a result. */
    find(method: string, params: RpcObject, members: readonly HubServer[]): readonly HubServer[] {
      const ref = isPlainObject(params.ref) ? params.ref.uri : undefined;
      const owner = members[owners.get(String(params.uri ?? params.taskId ?? ref)) ?? -1];
      return owner?.offers(method) === true ? [owner] : members.filter((member) => member.offers(method));
    },
  };
}

/** Returns the answer to the client's greeting. A server that has not answered yet may offer anything. */
function joinGreetings({ members, version }: Hub): object {
  const greetings = members.flatMap((member) => {
    const greeting = member.greeting();
    return greeting === undefined ? [] : [{ name: member.name, greeting }];
  });
  const versions = greetings.map(({ greeting }) => String(greeting.protocolVersion)).sort();
  const listChanged = { listChanged: true };
  const late = greetings.length < members.length ? { prompts: listChanged, resources: listChanged } : {};
  const capabilities = greetings.map(({ greeting }) => greeting.capabilities);
  const instructions = greetings.flatMap(({ name, greeting }) =>
    typeof greeting.instructions === "string" ? [`# ${name}\n${greeting.instructions}`] : [],
  );
  return {
    // The servers may speak different revisions. The oldest one promises least.
    protocolVersion: versions[0] ?? "2025-06-18",
    capabilities: [...capabilities, { tools: listChanged, ...late }].reduce(join, {}),
    serverInfo: { name: "plimsoll", version },
    ...(instructions.length === 0 ? {} : { instructions: instructions.join("\n\n") }),
  };
}

/** Joins two objects. True wins over false. */
function join(left: unknown, right: unknown): unknown {
  if (!isPlainObject(left) || !isPlainObject(right)) return right === false || right === undefined ? left : right;
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  const joined = (name: string): unknown => (name in left ? join(left[name], right[name]) : right[name]);
  return Object.fromEntries([...names].map((name) => [name, joined(name)]));
}
