/**
 * Adds an entry to a TOML file as a table at the end, and removes it again. If the file ended in a line break, the table does too.
 * So removing gives the old bytes back, and a file that did not exist differs from an empty one.
 */
import { isDeepStrictEqual } from "node:util";
import { ContextError } from "../../core/errors.ts";
import { fromByteString, scanToml, type TomlPart } from "../../core/text/index.ts";
import { type ConfigFormat, foreignEntry, type LocatedEntry, type WiredServer } from "./wired-server.ts";

type Parse = (text: string, options: { readonly integersAsBigInt: "asNeeded" }) => unknown;

/** Loads the parser only now, because few tools use TOML. */
export async function loadTomlFormat(): Promise<ConfigFormat> {
  const { parse } = await import("smol-toml");
  return {
    add: (current, server) => add(current, { ...server, parse }),
    remove: (current, server) => remove(current, { ...server, parse }),
    locate: (current, place) => locate(current, { ...place, entry: {}, parse }),
    renderPair: (key, value) => `${key} = ${renderValue(value)}`,
    separator: "\n",
  };
}

interface TomlServer extends WiredServer {
  readonly parse: Parse;
}

function add(current: string | undefined, server: TomlServer): string {
  const table = (newline: string) => renderTable(server, newline);
  if (current === undefined) return `${table("\n")}\n`;
  const found = readEntry(current, server);
  if (found !== undefined) {
    if (!isDeepStrictEqual(found, server.entry)) throw foreignEntry(server, findLine(current, server));
    return current;
  }
  const newline = current.includes("\r\n") ? "\r\n" : "\n";
  const endsInBreak = current.endsWith("\n");
  const isBlank = current === "" || current === "\xef\xbb\xbf";
  const gap = isBlank ? "" : endsInBreak ? newline : newline.repeat(2);
  const added = `${current}${gap}${table(newline)}${endsInBreak ? newline : ""}`;
  requireTable(added, server);
  return added;
}

function remove(current: string, server: TomlServer): string | undefined {
  const found = readEntry(current, server);
  if (found === undefined) return current;
  const table = findTable(current, server);
  if (table === undefined || table.hasComments || !isDeepStrictEqual(found, server.entry)) {
    throw foreignEntry(server, findLine(current, server));
  }
  const before = current.slice(0, table.start);
  const [lineBreak = ""] = /^\r?\n/.exec(current.slice(table.end)) ?? [];
  const after = current.slice(table.end + lineBreak.length);
  if (lineBreak === "") return `${before.replace(/(?:\r?\n){1,2}$/, "")}${after}`;
  if (before === "" && after === "") return undefined;
  // Removes our empty line before the table, but never joins two lines of the file.
  return `${before.replace(/(?<=^|\n)\r?\n$/, "")}${after}`;
}

function locate(current: string, server: TomlServer): LocatedEntry | undefined {
  const data = readEntry(current, server);
  const table = findTable(current, server);
  if (table === undefined || typeof data !== "object" || data === null) return undefined;
  const { start, end } = table;
  return {
    start,
    end,
    data: data as Record<string, unknown>,
    pair: (key) =>
      scanToml(current).find(
        ({ kind, path }) => kind === "pair" && isDeepStrictEqual(path, [...server.keys, server.name, key]),
      ),
  };
}

/** Returns the parsed value below the keys, or undefined if there is none. */
function readEntry(text: string, { keys, name, parse }: TomlServer): unknown {
  let value = parseToml(text, parse);
  for (const [index, key] of [...keys, name].entries()) {
    if (value === undefined) return undefined;
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new ContextError("unreadable_input", `${keys.slice(0, index).join(".")} is not a table`);
    }
    value = Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
  }
  // The parser's tables have no prototype.
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : value;
}

function parseToml(text: string, parse: Parse): unknown {
  try {
    return parse(fromByteString(text).replace(/^\uFEFF/, ""), { integersAsBigInt: "asNeeded" });
  } catch (error) {
    const { message, line } = error as { readonly message: string; readonly line?: number };
    const [what = ""] = message.replace(/^Invalid TOML document: /, "").split("\n");
    throw new ContextError("unreadable_input", `is not valid TOML: ${what}`, {
      line,
      hint: "Repair the file and run the command again.",
      cause: error,
    });
  }
}

function renderTable({ keys, name, entry }: WiredServer, newline: string): string {
  const quoted = (key: string) => (/^[\w-]+$/.test(key) ? key : JSON.stringify(key));
  const pairs = Object.entries(entry).map(([key, value]) => `${quoted(key)} = ${renderValue(value)}`);
  return [`[${[...keys, name].map(quoted).join(".")}]`, ...pairs].join(newline);
}

function renderValue(value: WiredServer["entry"][string]): string {
  return Array.isArray(value) ? `[${value.map((each) => JSON.stringify(each)).join(", ")}]` : JSON.stringify(value);
}

/** TOML does not allow tables below an inline table such as `mcp_servers = {}`. */
function requireTable(text: string, server: TomlServer): void {
  try {
    if (isDeepStrictEqual(readEntry(text, server), server.entry)) return;
  } catch {
    // The parser's message would be about a text that is in no file.
  }
  throw new ContextError(
    "refused_target",
    `${server.keys.join(".")} is written in a way that allows no table below it`,
    {
      hint: `Write it as [${server.keys.join(".")}] and run the command again.`,
    },
  );
}

function findTable(text: string, server: WiredServer) {
  const parts = scanToml(text);
  const first = parts.findIndex((part) => isHeader(part, server));
  if (first === -1) return undefined;
  const next = parts.findIndex(({ kind }, index) => index > first && kind === "table");
  const own = parts.slice(first, next === -1 ? undefined : next);
  const end = own.reduce((max, part) => (part.kind === "comment" ? max : Math.max(max, part.end)), 0);
  const lineEnd = end + /^[^\r\n]*/.exec(text.slice(end))![0].length;
  const hasComments = own.some(({ kind, start }) => kind === "comment" && start < lineEnd);
  return { start: own[0]!.start, end: lineEnd, hasComments };
}

function isHeader({ kind, path }: TomlPart, { keys, name }: WiredServer): boolean {
  return kind === "table" && isDeepStrictEqual(path, [...keys, name]);
}

function findLine(text: string, server: WiredServer): number | undefined {
  const header = scanToml(text).find((each) => isHeader(each, server));
  return header && text.slice(0, header.start).split("\n").length;
}
