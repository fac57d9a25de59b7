/** Clients of MCP servers: the official libraries, and one that speaks in lines. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as StdioV2 } from "@modelcontextprotocol/client/stdio";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as StdioV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as HttpV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { mainFile, type Sandbox } from "./run-plimsoll.ts";

export interface ToolResult {
  readonly content: readonly { readonly type: string; readonly text: string }[];
  readonly structuredContent?: {
    readonly status: string;
    readonly data: PageData;
    readonly error: PageError;
  };
  readonly isError?: boolean;
}

export interface PageData {
  readonly [field: string]: unknown;
  readonly returned: number;
  readonly total?: number;
  readonly truncated: boolean;
  readonly cut?: {
    readonly item?: number;
    readonly from: number;
    readonly to: number;
    readonly length: number;
  };
  readonly continuation_token?: string;
}

export interface PageError {
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
}

export interface TestClient {
  tools(): Promise<readonly { readonly name: string; readonly [field: string]: unknown }[]>;
  call(name: string, args: Record<string, unknown>, options?: { signal?: AbortSignal }): Promise<ToolResult>;
  /** Says that the roots are others now. */
  rootsChanged(): Promise<void>;
  close(): Promise<void>;
}

export interface ConnectOptions {
  readonly name?: string;
  readonly url?: string;
  /** Over HTTP. */
  readonly token?: string;
  /** The addresses that the client offers, asked for each time. */
  readonly roots?: () => readonly string[];
}

type Connect = (sandbox: Sandbox, args: readonly string[], options?: ConnectOptions) => Promise<TestClient>;

/** How to reach the command with these arguments. */
function server(sandbox: Sandbox, args: readonly string[]) {
  const { env, cwd } = sandbox;
  return { command: process.execPath, args: [mainFile, ...args], env, cwd, stderr: "ignore" as const };
}

const capabilitiesOf = ({ roots }: ConnectOptions) => (roots === undefined ? {} : { roots: { listChanged: true } });
const rootsOf =
  ({ roots }: ConnectOptions) =>
  async () => ({
    roots: roots!().map((uri) => ({ uri })),
  });
const requestInitOf = ({ token }: ConnectOptions) =>
  token === undefined ? {} : { requestInit: { headers: { authorization: `Bearer ${token}` } } };

function connectV2(mode: "legacy" | "modern"): Connect {
  return async (sandbox, args, options = {}) => {
    const { name = "test-v2", url } = options;
    const versionNegotiation = { mode: mode === "legacy" ? mode : ({ pin: "2026-07-28" } as const) };
    const client = new ClientV2({ name, version: "1" }, { versionNegotiation, capabilities: capabilitiesOf(options) });
    if (options.roots !== undefined) client.setRequestHandler("roots/list", rootsOf(options));
    await client.connect(
      url === undefined ? new StdioV2(server(sandbox, args)) : new HttpV2(new URL(url), requestInitOf(options)),
    );
    return {
      tools: async () => (await client.listTools()).tools as never,
      call: async (tool, input, settings) =>
        (await client.callTool({ name: tool, arguments: input }, settings)) as never,
      rootsChanged: () => client.sendRootsListChanged(),
      close: () => client.close(),
    };
  };
}

const connectV1: Connect = async (sandbox, args, options = {}) => {
  const { name = "test-v1", url } = options;
  const client = new ClientV1({ name, version: "1" }, { capabilities: capabilitiesOf(options) });
  if (options.roots !== undefined) client.setRequestHandler(ListRootsRequestSchema, rootsOf(options));
  const transport =
    url === undefined ? new StdioV1(server(sandbox, args)) : new HttpV1(new URL(url), requestInitOf(options));
  await client.connect(transport as never);
  return {
    tools: async () => (await client.listTools()).tools as never,
    call: async (tool, input, settings) =>
      (await client.callTool({ name: tool, arguments: input }, undefined, settings)) as never,
    rootsChanged: () => client.sendRootsListChanged(),
    close: () => client.close(),
  };
};

/** The official client of each generation, and the newer one in the revision without a handshake. */
export const officialClients: readonly (readonly [name: string, connect: Connect])[] = [
  ["client 1.32", connectV1],
  ["client 2.4", connectV2("legacy")],
  ["client 2.4 with revision 2026-07-28", connectV2("modern")],
];

/** All pages of a result, followed by `next_page` with the token as it comes. */
export async function readPages(
  client: Pick<TestClient, "call">,
  first: ToolResult,
  name = "next_page",
): Promise<PageData[]> {
  const pages: PageData[] = [];
  for (let result = first; ; ) {
    const { status, data } = JSON.parse(result.content[0]!.text) as { status: string; data: PageData };
    if (status !== "success") throw new Error(result.content[0]!.text);
    pages.push(data);
    if (pages.length > 5_000) throw new Error("the pages do not come to an end");
    if (data.continuation_token === undefined) return pages;
    result = await client.call(name, { token: data.continuation_token });
  }
}

export interface TextPage {
  readonly result: ToolResult;
  /** The text without the line about the page. */
  readonly body: string;
}

/** All pages of a result in text form, followed as the last line of each page says. */
export async function readTextPages(
  client: Pick<TestClient, "call">,
  call: { readonly name: string; readonly args: Record<string, unknown> },
): Promise<TextPage[]> {
  const pages: TextPage[] = [];
  for (let { name, args } = call; ; ) {
    const result = await client.call(name, args);
    const { text } = result.content[0]!;
    if (result.isError) throw new Error(text);
    const [, body = text, note = ""] = /^([\s\S]*?)\n?(\[[^\n]* · id \w{16}\])$/.exec(text) ?? [];
    pages.push({ result, body });
    const [, offset, tool, token] = /; next: (?:offset=(\d+)|(\w+) token=(\S+)) · /.exec(note) ?? [];
    if (offset === undefined && token === undefined) return pages;
    if (pages.length > 5_000) throw new Error("the pages do not come to an end");
    if (offset !== undefined) args = { ...args, offset: Number(offset) };
    else [name, args] = [tool!, { token }];
  }
}

/** The items of all pages; the parts of an item that was cut are joined. Fields that come behind them are none. */
export function joinItems(pages: readonly PageData[], itemsName: string): unknown[] {
  const items: unknown[] = [];
  for (const { cut, ...page } of pages) {
    const found = (page[itemsName] ?? []) as unknown[];
    if (found.length === 0) continue;
    if (cut !== undefined && cut.from > 0) items.push(`${items.pop()}${found[0]}`);
    else items.push(...found);
  }
  return items;
}

/** The token that the command made when it began to serve over HTTP. */
export function readToken({ home }: Pick<Sandbox, "home">): string {
  return readFileSync(join(home, ".local/state/plimsoll/mcp-token"), "utf8").trim();
}

export interface LineClient extends Pick<TestClient, "call"> {
  readonly child: ChildProcessWithoutNullStreams;
  /** All that came on stdout so far. */
  readonly lines: string[];
  stderr(): string;
  write(text: string | Buffer): void;
  notify(method: string, params?: object): void;
  /** The line that answers, as it came. */
  requestLine(method: string, params?: object): Promise<string>;
  request(method: string, params?: object): Promise<{ result: ToolResult; error?: { code: number } }>;
  initialize(protocolVersion?: string, name?: string): Promise<{ protocolVersion: string }>;
  /** Closes stdin and waits. Gives the exit code, or the signal. */
  end(): Promise<number | string>;
  exit: Promise<number | string>;
}

/** A client that sees every byte. */
export function connectLines(command: readonly string[], { cwd, env }: Pick<Sandbox, "cwd" | "env">): LineClient {
  const child = spawn(command[0]!, command.slice(1), { cwd, env });
  const lines: string[] = [];
  const waiting = new Map<string, (line: string) => void>();
  let [begun, errors, lastId] = ["", "", 0];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const parts = (begun + text).split("\n");
    begun = parts.pop()!;
    for (const line of parts) {
      lines.push(line);
      const id = /"id":(\d+)\}?/.exec(line.slice(-40))?.[1] ?? /"id":(\d+)/.exec(line.slice(0, 60))?.[1];
      waiting.get(id ?? "")?.(line);
    }
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  child.stdin.on("error", () => {});
  const exit = once(child, "close").then(([code, signal]) => (code ?? signal) as number | string);
  const write = (text: string | Buffer) => void child.stdin.write(text);
  const requestLine = (method: string, params: object = {}): Promise<string> => {
    lastId += 1;
    const id = String(lastId);
    const answer = new Promise<string>((resolve, reject) => {
      waiting.set(id, resolve);
      void exit.then((code) => reject(new Error(`${method}: the server ended (${code}): ${errors}`)));
    });
    write(`${JSON.stringify({ jsonrpc: "2.0", id: lastId, method, params })}\n`);
    return answer;
  };
  const request: LineClient["request"] = async (method, params) => JSON.parse(await requestLine(method, params));
  const notify = (method: string, params: object = {}) =>
    write(`${JSON.stringify({ jsonrpc: "2.0", method, params })}\n`);
  return {
    ...{ child, lines, write, notify, request, requestLine, exit },
    stderr: () => errors,
    async initialize(protocolVersion = "2025-06-18", name = "lines") {
      const clientInfo = { name, version: "1" };
      const { result } = await request("initialize", { protocolVersion, capabilities: {}, clientInfo });
      notify("notifications/initialized");
      return result as never;
    },
    call: async (name, args) => (await request("tools/call", { name, arguments: args })).result,
    end() {
      child.stdin.end();
      return exit;
    },
  };
}

/** The command as words. */
export function plimsoll(...args: readonly string[]): string[] {
  return [process.execPath, mainFile, ...args];
}
