import type { Writable } from "node:stream";
import { type Fields, isPlainObject, messageOf, readJson } from "../../core/text/index.ts";
import type { PluginTool } from "./plugin.ts";

interface ServeOptions {
  readonly version: string;
  readonly tools: Readonly<Record<string, PluginTool>>;
  readonly stdin: AsyncIterable<Buffer>;
  readonly stdout: Writable;
}

/** An MCP server on stdio with few methods, because it has to be there when the first tool returns. Serves until the
 *  client closes its end, and answers calls as they finish, in any order. */
export async function servePlugin(options: ServeOptions): Promise<void> {
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
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
      yield Buffer.concat([...parts, chunk.subarray(start, end)]).toString("utf8");
      parts = [];
      start = end + 1;
    }
    if (start < chunk.length) parts.push(chunk.subarray(start));
  }
}

/** Returns undefined for notifications and for what is no request. */
async function answer(line: string, options: ServeOptions): Promise<string | undefined> {
  const { id, method, params = {} } = readJson(line, isPlainObject) ?? {};
  if (id === undefined || typeof method !== "string") return undefined;
  const reply = (body: object): string => JSON.stringify({ jsonrpc: "2.0", id, ...body });
  try {
    const result = await callMethod(method, params as Fields, options);
    if (result === undefined) return reply({ error: { code: -32_601, message: `unknown method ${method}` } });
    return reply({ result });
  } catch (error) {
    const text = `plimsoll: ${messageOf(error)}`;
    return reply({ result: { isError: true, content: [{ type: "text", text }] } });
  }
}

async function callMethod(
  method: string,
  params: Fields,
  { tools, version }: ServeOptions,
): Promise<object | undefined> {
  if (method === "initialize") {
    const protocolVersion = typeof params.protocolVersion === "string" ? params.protocolVersion : "2025-06-18";
    return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "plimsoll", version } };
  }
  if (method === "ping") return {};
  if (method === "tools/list") {
    // Tools without a definition are not listed, so the model never sees them.
    const defined = Object.entries(tools).filter(([, { definition }]) => definition !== undefined);
    return { tools: defined.map(([name, { definition }]) => ({ name, ...definition })) };
  }
  if (method !== "tools/call") return undefined;
  const tool = Object.hasOwn(tools, String(params.name)) ? tools[String(params.name)] : undefined;
  if (tool === undefined) throw new TypeError(`there is no tool ${String(params.name)}`);
  return { content: [{ type: "text", text: await tool.call(Object(params.arguments) as Fields) }] };
}
