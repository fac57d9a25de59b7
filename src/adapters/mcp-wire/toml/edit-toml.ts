/**
 * Puts an entry into TOML as a table at the end of the file, and cuts it out again. A file that ended in a line break gets one behind
 * the table, too, one that did not gets none: so the way back knows how it ended, and a file that was not there is told from an
 * empty one.
 */
import { isDeepStrictEqual } from "node:util";
import { ContextError } from "../../../errors.ts";
import { fromByteString } from "../../../text/index.ts";
import { type ConfigFormat, foreignEntry, type WiredServer } from "../wired-server.ts";
import { type TomlStatement, tomlStatements } from "./toml-statements.ts";

type Parse = (text: string, options: { readonly integersAsBigInt: "asNeeded" }) => unknown;

/** The parser is loaded here: few files are TOML. */
export async function loadTomlFormat(): Promise<ConfigFormat> {
  const { parse } = await import("smol-toml");
  return {
    add: (current, server) => add(current, { ...server, parse }),
    remove: (current, server) => remove(current, { ...server, parse }),
  };
}

interface TomlServer extends WiredServer {
  readonly parse: Parse;
}

function add(current: string | undefined, server: TomlServer): string {
  const table = (newline: string) => renderTable(server, newline);
  if (current === undefined) return `${table("\n")}\n`;
  const found = entryIn(current, server);
  if (found !== undefined) {
    if (!isDeepStrictEqual(found, server.entry)) throw foreignEntry(server, lineOf(current, server));
    return current;
  }
  const newline = current.includes("\r\n") ? "\r\n" : "\n";
  const endsInBreak = current.endsWith("\n");
  const gap = isBlank(current) ? "" : endsInBreak ? newline : newline.repeat(2);
  const added = `${current}${gap}${table(newline)}${endsInBreak ? newline : ""}`;
  requireTable(added, server);
  return added;
}

function remove(current: string, server: TomlServer): string | undefined {
  const found = entryIn(current, server);
  if (found === undefined) return current;
  const table = tableOf(current, server);
  if (table === undefined || table.hasComments || !isDeepStrictEqual(found, server.entry)) {
    throw foreignEntry(server, lineOf(current, server));
  }
  const before = current.slice(0, table.start);
  const [lineBreak = ""] = /^\r?\n/.exec(current.slice(table.end)) ?? [];
  const after = current.slice(table.end + lineBreak.length);
  if (lineBreak === "") return `${before.replace(/(?:\r?\n){1,2}$/, "")}${after}`;
  if (before === "" && after === "") return undefined;
  // The empty line before the table is ours, but no line of a person may grow together with the next.
  return `${before.replace(/(?<=^|\n)\r?\n$/, "")}${after}`;
}

/** The parsed value below the keys; `undefined` where nothing is. */
function entryIn(text: string, { keys, name, parse }: TomlServer): unknown {
  let value = parseToml(text, parse);
  for (const [index, key] of [...keys, name].entries()) {
    if (value === undefined) return undefined;
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new ContextError("unreadable_input", `${keys.slice(0, index).join(".")} is no table`);
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
    throw new ContextError("unreadable_input", `is no TOML: ${what}`, {
      line,
      hint: "Mend the file, and run the command again.",
      cause: error,
    });
  }
}

const byteOrderMark = "\xef\xbb\xbf";

function isBlank(text: string): boolean {
  return text === "" || text === byteOrderMark;
}

function renderTable({ keys, name, entry }: WiredServer, newline: string): string {
  const quoted = (key: string) => (/^[\w-]+$/.test(key) ? key : JSON.stringify(key));
  const pairs = Object.entries(entry).map(([key, value]) => `${quoted(key)} = ${renderValue(value)}`);
  return [`[${[...keys, name].map(quoted).join(".")}]`, ...pairs].join(newline);
}

function renderValue(value: WiredServer["entry"][string]): string {
  return Array.isArray(value)
    ? `[${value.map((each) => JSON.stringify(each)).join(", ")}]`
    : JSON.stringify(value);
}

/** An inline table, `mcp_servers = {}`, takes no table from outside. */
function requireTable(text: string, server: TomlServer): void {
  try {
    if (isDeepStrictEqual(entryIn(text, server), server.entry)) return;
  } catch {
    // The reason would speak of a text that is nowhere.
  }
  throw new ContextError("refused_target", `${server.keys.join(".")} is written so that it takes no table`, {
    hint: `Write it as [${server.keys.join(".")}], and run the command again.`,
  });
}

interface Table extends Pick<TomlStatement, "start" | "end"> {
  readonly hasComments: boolean;
}

function tableOf(text: string, server: WiredServer): Table | undefined {
  const statements = tomlStatements(text);
  const first = statements.findIndex((each) => isHeader(each, server));
  if (first === -1) return undefined;
  const next = statements.findIndex(({ kind }, index) => index > first && kind === "table");
  const own = statements.slice(first, next === -1 ? undefined : next);
  const { end } = own.findLast(({ kind }) => kind !== "comment")!;
  const lineEnd = end + /^[^\r\n]*/.exec(text.slice(end))![0].length;
  const hasComments = own.some(({ kind, start }) => kind === "comment" && start < lineEnd);
  return { start: own[0]!.start, end: lineEnd, hasComments };
}

function isHeader({ keys }: TomlStatement, { keys: above, name }: WiredServer): boolean {
  return isDeepStrictEqual(keys, [...above, name]);
}

function lineOf(text: string, server: WiredServer): number | undefined {
  const header = tomlStatements(text).find((each) => isHeader(each, server));
  return header && text.slice(0, header.start).split("\n").length;
}
