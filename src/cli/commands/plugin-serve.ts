/** `plugin serve`: the process that an installed plugin starts. Only the protocol uses stdout. */
import type { Writable } from "node:stream";
import type { PluginClient, PluginSettings, PluginTool } from "../../clients/index.ts";
import { ContextError } from "../../core/errors.ts";
import type { Store } from "../../core/store/index.ts";
import { type Fields, messageOf } from "../../core/text/index.ts";
import { openStore, storePath, takeEndSignals } from "../../host/index.ts";
import type { Call } from "../command.ts";
import { readVersion } from "../version.ts";

/** A store that is busy for longer counts as broken, and the result stays as it is. */
const waitMs = 40;

export async function runPluginServe(
  call: Call<{ readonly store?: string | undefined }>,
  client: PluginClient,
  settings: PluginSettings,
): Promise<undefined> {
  if (client.serverTools === undefined) throw new ContextError("usage", `${client.id} has no process of its own`);
  const { env, output, stdin } = call;
  let opened: Promise<Store> | undefined;
  const store = (): Promise<Store> => {
    opened ??= open(call);
    // A person may repair it during the session.
    opened.catch(() => {
      opened = undefined;
    });
    return opened;
  };
  // The first result should not wait for the database.
  store().catch(() => {});
  const endings: (() => Promise<void>)[] = [];
  const beforeEnd = (work: () => Promise<void>): void => void endings.push(work);
  const tools = client.serverTools({ settings, env, store, beforeEnd, log: output.note });
  process.stdout.removeAllListeners("error");
  process.stdout.on("error", () => process.exit());
  const finish = async (): Promise<void> => {
    // Without a store there is nothing to finish.
    for (const work of endings) await work().catch(() => {});
    await (await opened?.catch(() => undefined))?.close();
  };
  takeEndSignals(() => finish().finally(() => process.exit()));
  await servePlugin({ version: readVersion(), tools, stdin, stdout: process.stdout });
  await finish();
  return undefined;
}

interface ServeOptions {
  readonly version: string;
  readonly tools: Readonly<Record<string, PluginTool>>;
  readonly stdin: AsyncIterable<Buffer>;
  readonly stdout: Writable;
}

/** An MCP server on stdio with few methods, because it has to be there when the first tool returns. Serves until the
 *  client closes its end, and answers calls as they finish, in any order. */
async function servePlugin(options: ServeOptions): Promise<void> {
  const { stdin, stdout } = options;
  const pending = new Set<Promise<void>>();
  for await (const line of readLines(stdin)) {
    const work = answer(line, options).then((text) => {
      if (text !== undefined && stdout.writable) stdout.write(`${text}\n`);
      pending.delete(work);
    });
    pending.add(work);
  }
  await Promise.all(pending);
}

async function* readLines(source: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let parts: Buffer[] = [];
  for await (const chunk of source) {
    let start = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
      yield Buffer.concat([...parts, chunk.subarray(start, end)]).toString("utf8");
      parts = [];
      start = end + 1;
    }
    if (start < chunk.length) parts.push(chunk.subarray(start));
  }
}

const lineFeed = 0x0a;

/** Returns undefined for notifications and for what is no request. */
async function answer(line: string, options: ServeOptions): Promise<string | undefined> {
  const request = parse(line);
  const { id, method, params = {} } = request;
  if (id === undefined || typeof method !== "string") return undefined;
  const reply = (body: object): string => JSON.stringify({ jsonrpc: "2.0", id, ...body });
  try {
    const result = await resultOf(method, params as Fields, options);
    if (result === undefined) return reply({ error: { code: -32_601, message: `unknown method ${method}` } });
    return reply({ result });
  } catch (error) {
    const text = `plimsoll: ${messageOf(error)}`;
    return reply({ result: { isError: true, content: [{ type: "text", text }] } });
  }
}

function parse(line: string): Fields {
  try {
    return Object(JSON.parse(line)) as Fields;
  } catch {
    return {};
  }
}

async function resultOf(method: string, params: Fields, { tools, version }: ServeOptions): Promise<object | undefined> {
  if (method === "initialize") {
    const protocolVersion = typeof params.protocolVersion === "string" ? params.protocolVersion : "2025-06-18";
    return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "plimsoll", version } };
  }
  if (method === "ping") return {};
  if (method === "tools/list") return { tools: listed(tools) };
  if (method !== "tools/call") return undefined;
  const tool = Object.hasOwn(tools, String(params.name)) ? tools[String(params.name)] : undefined;
  if (tool === undefined) throw new TypeError(`there is no tool ${String(params.name)}`);
  return { content: [{ type: "text", text: await tool.call(Object(params.arguments) as Fields) }] };
}

/** Tools without a definition are not listed, so the model never sees them. */
function listed(tools: Readonly<Record<string, PluginTool>>): object[] {
  return Object.entries(tools).flatMap(([name, { definition }]) =>
    definition === undefined ? [] : [{ name, ...definition }],
  );
}

/** Answers one event. A failure is a note on stderr and no answer, so that the client goes on with the original. */
export async function runPluginHook(
  call: Call<{ readonly store?: string | undefined }>,
  client: PluginClient,
  settings: PluginSettings,
): Promise<undefined> {
  if (client.hook === undefined) throw new ContextError("usage", `${client.id} has no hooks that run a command`);
  const { env, output, stdin } = call;
  let opened: Promise<Store> | undefined;
  const store = (): Promise<Store> => {
    opened ??= open(call);
    return opened;
  };
  try {
    const event = Object(JSON.parse(await readAll(stdin)));
    const answer = await client.hook(event, { settings, env, store, log: output.note });
    if (answer !== undefined) output.exactResult(`${JSON.stringify(answer)}\n`);
  } catch (error) {
    output.note(messageOf(error));
  }
  await (await opened?.catch(() => undefined))?.close();
  return undefined;
}

async function readAll(stdin: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stdin) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

async function open(call: Call<{ readonly store?: string | undefined }>): Promise<Store> {
  return openStore({ place: await storePath(call.options.store, call), waitMs });
}
