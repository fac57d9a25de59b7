/** Our server, as the AI tools want it in their configuration. */
import { ContextError } from "../../errors.ts";

/** Where in a file an entry stands: below `keys`, under `name`. */
export interface WiredServer {
  readonly keys: readonly string[];
  readonly name: string;
  readonly entry: ServerEntry;
}

export type ServerEntry = Readonly<Record<string, string | boolean | readonly string[]>>;

/** One way to edit a kind of file. Contents are byte strings; what cannot be done is thrown, with the line. */
export interface ConfigFormat {
  /** The file with the entry; the same text where it is there already. */
  add(current: string | undefined, server: WiredServer): string;
  /** The file as it was before; the same text where the entry is not there, `undefined` where nothing else is. */
  remove(current: string, server: WiredServer): string | undefined;
}

export const serverName = "plimsoll";

/** As npm installs it. */
export const serverCommand = "plimsoll";

const command = serverCommand;
const args = ["mcp"];

/** By the key that holds the servers, then by tool. All looked up 2026-11-15. */
const entries: Readonly<Record<string, ServerEntry>> = {
  // VS Code: code.visualstudio.com/docs/copilot/chat/mcp-servers
  servers: { type: "stdio", command, args },
  // OpenCode and Kilo, which took it over: opencode.ai/docs/mcp-servers
  mcp: { type: "local", command: [command, ...args], enabled: true },
  // Zed took only this form for a while: zed.dev/docs/ai/mcp
  context_servers: { source: "custom", command, args },
  // Copilot CLI asks for both further fields: docs.github.com, "Writing a JSON configuration for MCP servers"
  "github-copilot mcpServers": { type: "local", command, args, tools: ["*"] },
  // docs.factory.ai/cli/configuration/mcp
  "factory-droid mcpServers": { type: "stdio", command, args },
};

/** What a tool wants under this key; nearly all want the two fields alone. */
export function serverEntry(tool: string, key: string): ServerEntry {
  return entries[`${tool} ${key}`] ?? entries[key] ?? { command, args };
}

/** An entry under our name that we did not write, or that was changed since, is a person's. */
export function foreignEntry({ keys, name }: WiredServer, line?: number): ContextError {
  const path = [...keys, name].join(".");
  return new ContextError(
    "refused_target",
    `${path} is not the entry that plimsoll writes: it stays as it is`,
    {
      line,
      hint: "Take it out by hand, and run the command again.",
    },
  );
}

/** The same as ours, but not known to be ours. */
export function unknownEntry({ keys, name }: WiredServer): ContextError {
  const path = [...keys, name].join(".");
  return new ContextError(
    "refused_target",
    `${path} was not written by "plimsoll mcp install" here: it stays as it is`,
    { hint: "Take it out by hand if nobody needs it." },
  );
}
