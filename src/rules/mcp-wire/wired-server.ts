/** The entry of our server in the configuration files of AI tools. */
import { join } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { changeFile, type Environment, readForeignText, stateDirectory } from "../../host/index.ts";

/** The place of an entry in a file: below `keys`, under `name`. */
export interface WiredServer {
  readonly keys: readonly string[];
  readonly name: string;
  readonly entry: ServerEntry;
}

export type ServerEntry = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** Edits one kind of file. Contents are byte strings. Throws an error with the line if the file cannot be edited. */
export interface ConfigFormat {
  /** Returns the file with the entry, or the same text if the entry is there already. */
  add(current: string | undefined, server: WiredServer): string;
  /** Returns the file as it was before `add`. Returns the same text if there is no entry, and undefined if there is nothing else. */
  remove(current: string, server: WiredServer): string | undefined;
  /** Finds the entry of any server. */
  locate(current: string, place: Pick<WiredServer, "keys" | "name">): LocatedEntry | undefined;
  /** Returns the text of one setting. */
  renderPair(key: string, value: string | readonly string[]): string;
  /** What is between two settings. */
  readonly separator: string;
}

/** Where an entry is in its file. */
export interface LocatedEntry {
  readonly start: number;
  readonly end: number;
  readonly data: Readonly<Record<string, unknown>>;
  /** Returns where a setting is, with its key. */
  pair(key: string): { readonly start: number; readonly end: number } | undefined;
}

/** The command that npm installs. */
export const serverCommand = "plimsoll";

const command = serverCommand;
const args = ["mcp"];

/** Entries by the key that holds the servers, or by tool and key. All looked up 2026-11-15. */
const entries: Readonly<Record<string, ServerEntry>> = {
  // VS Code: code.visualstudio.com/docs/copilot/chat/mcp-servers
  servers: { type: "stdio", command, args },
  // OpenCode, and Kilo, which uses the same format: opencode.ai/docs/mcp-servers
  mcp: { type: "local", command: [command, ...args], enabled: true },
  // Zed took only this form for a while: zed.dev/docs/ai/mcp
  context_servers: { source: "custom", command, args },
  // Copilot CLI asks for both further fields: docs.github.com, "Writing a JSON configuration for MCP servers"
  "github-copilot mcpServers": { type: "local", command, args, tools: ["*"] },
  // docs.factory.ai/cli/configuration/mcp
  "factory-droid mcpServers": { type: "stdio", command, args },
};

/** Returns our server as a tool wants it under this key. Nearly all tools want only `command` and `args`. */
export function ourServer(keys: readonly string[], { tool, key }: { tool: string; key: string }): WiredServer {
  return { keys, name: "plimsoll", entry: entries[`${tool} ${key}`] ?? entries[key] ?? { command, args } };
}

/** For an entry under our name that we did not write or that a person changed. */
export function foreignEntry({ keys, name }: WiredServer, line?: number): ContextError {
  const path = [...keys, name].join(".");
  return new ContextError("refused_target", `${path} is not the entry that plimsoll writes, so it was not changed`, {
    line,
    hint: "Remove it by hand and run the command again.",
  });
}

/** The entries that `mcp install` wrote. `mcp uninstall` removes no others, because a person may have written an equal
 *  one. They are kept beside the store: the files have no place for a mark that every tool ignores. */
interface WrittenEntries {
  has(id: string): boolean;
  all(): readonly string[];
  add(ids: readonly string[]): Promise<void>;
  remove(ids: readonly string[]): Promise<void>;
}

export async function readWrittenEntries(env: Environment): Promise<WrittenEntries> {
  const folder = stateDirectory(env);
  const path = join(folder, "mcp-entries.json");
  const read = readForeignText(path);
  const known = new Set(parse("text" in read ? read.text : undefined));
  const change = async (ids: readonly string[], edit: (all: string[]) => string[]): Promise<void> => {
    if (ids.length === 0) return;
    await changeFile(path, {
      root: folder,
      env,
      isPrivate: true,
      // Contents are byte strings.
      change: (current) => {
        const before = current === undefined ? undefined : Buffer.from(current, "latin1").toString("utf8");
        const after = edit(parse(before));
        const text = after.length === 0 ? undefined : `${JSON.stringify(after, null, 2)}\n`;
        return text && Buffer.from(text, "utf8").toString("latin1");
      },
    });
  };
  return {
    has: (id) => known.has(id),
    all: () => [...known],
    add: (ids) => change(ids, (all) => [...new Set([...all, ...ids])].sort()),
    remove: (ids) => change(ids, (all) => all.filter((id) => !ids.includes(id))),
  };
}

/** If the file cannot be read, no entry is known. */
function parse(text: string | undefined): string[] {
  try {
    const value: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
  } catch {
    return [];
  }
}
