/** A server as its users have it: a process of its own, asked over stdio by the official client. */
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

export interface ServerCommand {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface ServerClient {
  call(name: string, args: object): Promise<CallResult>;
  /** What the server puts into a conversation before any call: each definition as JSON, and the instructions. */
  context(): Promise<{ readonly definitions: readonly string[]; readonly instructions: string }>;
  /** The most that the process had in memory so far; undefined where the system does not tell. */
  peakMegabytes(): number | undefined;
  close(): Promise<void>;
}

export interface CallResult {
  readonly text: string;
  /** What our own servers answer with. */
  readonly data: Readonly<Record<string, unknown>> | undefined;
}

/** Ten megabytes come in one line of twice that, since the reference server sends them as text and as data. */
const MOST_LINE_BYTES = 64 * 1024 * 1024;

export async function startServer({ args, cwd, env }: ServerCommand): Promise<ServerClient> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [...args],
    cwd,
    env: { ...env },
    stderr: "ignore",
    maxBufferSize: MOST_LINE_BYTES,
  });
  const client = new Client({ name: "plimsoll-bench", version: "1.0.0" });
  await client.connect(transport);
  return {
    async call(name, args) {
      const result = await client.callTool({ name, arguments: { ...args } }, { timeout: 120_000 });
      const { content, structuredContent } = result as { content?: unknown; structuredContent?: unknown };
      const [first] = (content ?? []) as { text?: string }[];
      if (result.isError === true) throw new Error(`${name} failed: ${first?.text}`);
      return { text: first?.text ?? "", data: (structuredContent as { data?: CallResult["data"] })?.data };
    },
    async context() {
      const { tools } = await client.listTools();
      const definitions = tools.map(({ name, description, inputSchema }) =>
        JSON.stringify({ name, description, inputSchema }),
      );
      return { definitions, instructions: client.getInstructions() ?? "" };
    },
    peakMegabytes: () => peakOf(transport.pid ?? 0),
    close: () => client.close(),
  };
}

/** Linux alone tells the peak of another process. */
export function peakOf(pid: number): number | undefined {
  try {
    const kilobytes = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return kilobytes === undefined ? undefined : Number(kilobytes) / 1_024;
  } catch {
    return undefined;
  }
}
