/** Reads MCP servers from the configuration of an AI tool, in any of the forms that the tools use. */
import { basename, resolve } from "node:path";
import { ContextError, usageError } from "../../core/errors.ts";
import { didYouMean, isPlainObject, messageOf } from "../../core/text/index.ts";
import { type Environment, readTextFile } from "../../host/index.ts";
import { scanJson } from "./scan-json.ts";
import { serverCommand } from "./wired-server.ts";

/** A server as it is started or reached. */
export type McpServer =
  | {
      readonly name: string;
      readonly command: readonly [string, ...string[]];
      readonly env?: Readonly<Record<string, string>> | undefined;
      readonly cwd?: string | undefined;
    }
  | { readonly name: string; readonly url: string; readonly headers: Readonly<Record<string, string>> };

export interface ReadServersOptions {
  readonly env: Environment;
  /** For relative directories in the files. */
  readonly cwd: string;
  /** The servers to return. Absent: all. */
  readonly names?: readonly string[] | undefined;
  /** Receives why servers were left out, unless `names` chooses the servers. */
  note(text: string): void;
}

/** Reads the servers of files. Throws on an unknown name, and if a file has no servers. */
export async function readServers(
  files: readonly string[],
  { names, note, ...place }: ReadServersOptions,
): Promise<McpServer[]> {
  const found = await Promise.all(files.map((file) => readServersFile(file, place)));
  const all = { servers: found.flatMap(({ servers }) => servers), leftOut: found.flatMap(({ leftOut }) => leftOut) };
  if (names !== undefined) return chooseServers(all, names);
  for (const reason of all.leftOut) note(`left out the server ${reason}`);
  return all.servers;
}

type Place = Pick<ReadServersOptions, "env" | "cwd">;

interface ReadServers {
  readonly servers: readonly McpServer[];
  /** Sentences about servers that were left out. */
  readonly leftOut: readonly string[];
}

/** The names under which files have their servers. */
const keys = ["mcpServers", "servers", "mcp_servers", "mcp", "context_servers", "amp.mcpServers"];

/** Reads JSON with or without comments, or TOML. */
async function readServersFile(file: string, place: Place): Promise<ReadServers> {
  const read = await readTextFile(file);
  if (!("text" in read)) throw new ContextError("unreadable_input", `cannot be read: ${read.reason}`, { file });
  const data = await parseFile(file, read.text);
  const found = isPlainObject(data) ? keys.map((key) => data[key]).find(isPlainObject) : undefined;
  if (found === undefined) {
    throw new ContextError("unreadable_input", "has no MCP servers", {
      file,
      hint: `Put them under "mcpServers", each with a command or a url.`,
    });
  }
  const servers: McpServer[] = [];
  const leftOut: string[] = [];
  for (const [name, entry] of Object.entries(found)) {
    const read = readServer(name, entry, place);
    if (typeof read === "string") leftOut.push(`${name}: ${read}`);
    else servers.push(read);
  }
  return { servers, leftOut };
}

function chooseServers({ servers, leftOut }: ReadServers, names: readonly string[]): McpServer[] {
  const known = servers.map(({ name }) => name);
  return [...new Set(names)].map((name) => {
    const found = servers.find((server) => server.name === name);
    if (found !== undefined) return found;
    const reason = leftOut.find((each) => each.startsWith(`${name}: `));
    const hint = reason ?? didYouMean(name, known) ?? `The servers are ${known.join(", ")}.`;
    throw usageError(`there is no server "${name}"`, hint);
  });
}

async function parseFile(file: string, text: string): Promise<unknown> {
  try {
    if (!file.endsWith(".toml")) {
      const { root, read } = scanJson(text, []);
      return root && read(root).data;
    }
    const { parse } = await import("smol-toml");
    return parse(text);
  } catch (cause) {
    if (cause instanceof ContextError) throw new ContextError(cause.code, cause.message, { file, line: cause.line });
    throw new ContextError("unreadable_input", `is not valid TOML: ${messageOf(cause).split("\n")[0]}`, {
      file,
      cause,
    });
  }
}

/** Returns the server, or why it is left out. */
function readServer(name: string, entry: unknown, place: Place): McpServer | string {
  if (!isPlainObject(entry)) return "is not an object";
  if (entry.disabled === true || entry.enabled === false) return "is turned off";
  const url = entry.url ?? entry.httpUrl ?? entry.serverUrl;
  return typeof url === "string" ? readAddress(name, entry, { url, ...place }) : readProgram(name, entry, place);
}

type Entry = Readonly<Record<string, unknown>>;

function readAddress(
  name: string,
  entry: Entry,
  { url: written, env }: Place & { readonly url: string },
): McpServer | string {
  const url = expand(written, env);
  if (entry.type === "sse") return "uses the old transport over SSE, which wrap does not support";
  if (!URL.canParse(url) || !/^https?:/.test(url)) return "has an address that is not http or https";
  const headers = expandAll(entry.headers ?? entry.http_headers, env);
  return { name, url, headers: { ...headers, ...codexHeaders(entry, env) } };
}

function readProgram(name: string, entry: Entry, { env, cwd }: Place): McpServer | string {
  const words = Array.isArray(entry.command)
    ? entry.command
    : [entry.command, ...(Array.isArray(entry.args) ? entry.args : [])];
  const [program, ...args] = words;
  if (typeof program !== "string" || program === "") return "has neither a command nor a url";
  if (isOwnWrap(program, args)) return "is plimsoll itself";
  const folder = typeof entry.cwd === "string" ? resolve(cwd, expand(entry.cwd, env)) : undefined;
  return {
    name,
    command: [expand(program, env), ...args.map((each) => expand(String(each), env))],
    env: expandAll(entry.env ?? entry.environment, env),
    cwd: folder,
  };
}

function expandAll(values: unknown, env: Environment): Record<string, string> {
  const entries = isPlainObject(values) ? Object.entries(values) : [];
  return Object.fromEntries(entries.map(([key, value]) => [key, expand(String(value), env)]));
}

/** A wrap of a whole file would start itself again and again. */
function isOwnWrap(program: string, args: readonly unknown[]): boolean {
  const own = args.slice(0, args.includes("--") ? args.indexOf("--") : undefined);
  return (
    basename(program) === serverCommand && own.includes("wrap") && (own.includes("--from") || own.includes("--config"))
  );
}

/** Codex names variables instead of values. */
function codexHeaders(entry: Entry, env: Environment): Record<string, string> {
  const { bearer_token_env_var: token, env_http_headers: named } = entry;
  const headers = isPlainObject(named)
    ? Object.entries(named).map(([key, name]) => [key, env[String(name)] ?? ""])
    : [];
  if (typeof token === "string") headers.push(["Authorization", `Bearer ${env[token] ?? ""}`]);
  return Object.fromEntries(headers) as Record<string, string>;
}

/** Fills in variables as the tools write them: `${NAME}`, `${NAME:-default}`, `${env:NAME}` and `{env:NAME}`. */
function expand(text: string, env: Environment): string {
  return text.replace(
    /\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}|\{env:([A-Za-z_]\w*)\}/g,
    (whole, name?: string, fallback?: string, other?: string) =>
      env[name ?? other ?? ""] ?? fallback ?? (other === undefined ? whole : ""),
  );
}
