import type { Counter } from "../../core/tokens/index.ts";
import type { LedgerOptions, PageLimit } from "../session/index.ts";

/** What each client shows of one result before it cuts it, in the client's own unit. The key is the beginning of the
 *  name that the client gives at initialize. Measured with these versions, 2026-11. Each limit leaves room for what the
 *  client adds to the result. */
const clientLimits: readonly (readonly [name: string, limit: PageLimit])[] = [
  // Codex 0.166 kept 12,000 bytes of UTF-8, including its own "Wall time: … Output:", and cut out the middle. It showed
  // a text as it is, and structured content as JSON.
  ["codex", { bytes: 11_500 }],
  // gemini-cli 0.61 kept the first 8,000 and the last 32,000 characters.
  ["gemini-cli", { characters: 39_000 }],
  // opencode 1.18 kept 51,200 bytes of UTF-8 and 2,000 lines, with an empty line between blocks. It showed nothing of a
  // longer single line.
  ["opencode", { bytes: 48_000, lines: 1_900 }],
  // Claude Code 2.1 moves a result above 25,000 tokens, or about 50,000 characters, into a file.
  ["claude-code", { tokens: 20_000, characters: 48_000 }],
];

/** Returns what a client shows of one result. An unknown client gets short pages, unless a person set their size. */
export function findClientLimit(name: string | undefined, { perToolCall }: LedgerOptions = {}): PageLimit {
  const known = clientLimits.find(([start]) => normalizeName(name).startsWith(start))?.[1];
  return known ?? (perToolCall === undefined ? { tokens: 8_000 } : {});
}

function normalizeName(client: string | undefined): string {
  return client?.toLowerCase().replaceAll(/[\s_]+/g, "-") ?? "";
}

/** How each client shows the name of a server's tool to its model. Seen in the requests of the versions above. */
const toolNames: readonly (readonly [client: string, show: (server: string, tool: string) => string])[] = [
  ["codex", (server, tool) => `mcp__${server}__${tool}`],
  ["gemini-cli", (server, tool) => `mcp_${server}_${tool}`],
  ["opencode", (server, tool) => `${server}_${tool}`],
  ["claude-code", (server, tool) => `mcp__${server}__${tool}`],
];

/** Returns the name of a tool as the model sees it. Without the server's name in the client it is the plain name. */
export function findToolName(tool: string, client: string | undefined, server: string | undefined): string {
  const show = toolNames.find(([start]) => normalizeName(client).startsWith(start))?.[1];
  return server === undefined || show === undefined ? tool : show(server.replaceAll(/[^\w-]/g, "_"), tool);
}

/** Completes what a person set. Without a total, the client decides how large a page is, and no page is so short that a
 *  model needs many calls to read a file. */
export function completeBudget(budget: LedgerOptions): LedgerOptions {
  const { total, perToolCall, minPerCall = 2_000 } = budget;
  const largestPage = 20_000;
  return { ...budget, minPerCall, perToolCall: perToolCall ?? (total === "unlimited" ? largestPage : undefined) };
}

/** Returns the tokens in a client's context before any tool is called: the instructions, and what a model sees of each
 *  tool. How a provider wraps tool definitions depends on the client and is not counted. */
export function countContext(
  counter: Counter,
  context: {
    readonly instructions?: string | undefined;
    readonly tools: readonly unknown[];
  },
): number {
  const { instructions = "", tools } = context;
  let tokens = counter.count(instructions);
  for (const tool of tools) {
    // Only the client uses titles, annotations and schemas of results.
    const { name, description, inputSchema } = Object(tool) as Record<string, unknown>;
    tokens += counter.count(JSON.stringify({ name, description, inputSchema }));
  }
  return tokens;
}
