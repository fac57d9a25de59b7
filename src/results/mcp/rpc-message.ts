import type { Writable } from "node:stream";
import {
  applyEdits,
  elementsOf,
  formatNumber,
  isPlainObject,
  type JsonEdit,
  type JsonMember,
  type JsonRange,
  memberOf,
} from "../../core/text/index.ts";
import { type LineEnds, maxLineBytes, writeLine } from "./line-stream.ts";

/** The parts of a JSON-RPC message that matter for passing it on. Malformed parts are left out: the receiver of the
 *  message decides about them. */
export interface RpcMessage {
  /** The JSON of the id, because 1 and "1" are two ids. */
  readonly id?: string | undefined;
  /** The JSON of the id of the cancelled request. */
  readonly cancels?: string | undefined;
  readonly method?: string | undefined;
  readonly params?: RpcObject | undefined;
  readonly result?: RpcObject | undefined;
  /** The whole message. */
  readonly value: unknown;
  /** The bytes as they arrived. A message of several in a line gets a line break. */
  text(): string;
}

export type RpcObject = Readonly<Record<string, unknown>>;

export interface ParsedLine {
  readonly text: string;
  /** One revision of the protocol allows several messages in a line. */
  readonly isBatch: boolean;
  readonly messages: readonly RpcMessage[];
}

/** Returns undefined if it is not JSON or too long for a string. */
export function parseLine(line: Buffer): ParsedLine | undefined {
  const known = parsedLines.get(line);
  if (known !== undefined) return known;
  let text: string;
  let value: unknown;
  try {
    text = line.toString("utf8");
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  let ranges: readonly JsonRange[] | undefined;
  const textAt = (index: number): string => {
    ranges ??= elementsOf(text, 0);
    const { start, end } = ranges[index]!;
    return `${text.slice(start, end)}\n`;
  };
  const messages = Array.isArray(value)
    ? value.map((each, index) => readMessage(each, () => textAt(index)))
    : [readMessage(value, () => text)];
  const parsed = { text, isBatch: Array.isArray(value), messages };
  parsedLines.set(line, parsed);
  return parsed;
}

/** A line passes several readers. Parsing 100 MB twice would take twice the memory. */
const parsedLines = new WeakMap<Buffer, ParsedLine>();

/** Returns each message of a line. Other lines have none. */
export function parseRpcMessages(line: Buffer): readonly RpcMessage[] {
  return parseLine(line)?.messages ?? [];
}

function readMessage(value: unknown, text: () => string): RpcMessage {
  if (!isPlainObject(value)) return { value, text };
  const { method, params, result } = value;
  return {
    id: idText({ value, text }, "id"),
    cancels: method === "notifications/cancelled" ? idText({ value, text }, "params", "requestId") : undefined,
    method: typeof method === "string" ? method : undefined,
    params: isPlainObject(params) ? params : undefined,
    result: isPlainObject(result) ? result : undefined,
    value,
    text,
  };
}

/** Returns the JSON of the id as it is written, if JavaScript would round it, as with ids of 64 bits. */
export function idText(message: Pick<RpcMessage, "value" | "text">, ...names: readonly string[]): string | undefined {
  const id = names.reduce<unknown>((value, name) => (isPlainObject(value) ? value[name] : undefined), message.value);
  if (typeof id === "string" || Number.isSafeInteger(id)) return JSON.stringify(id);
  if (typeof id !== "number") return undefined;
  const text = message.text();
  const range = names.reduce((outer, name) => memberOf(text, outer.start, name)!.value, { start: 0, end: 0 });
  return text.slice(range.start, range.end);
}

/** Returns what a message is, from the ends of its line, and the JSON of its id if that is its first or last member. */
export function readEnds({ head, tail }: LineEnds): { readonly isRequest: boolean; readonly id?: string | undefined } {
  const isRequest = /^\s*\{(?:\s*"(?:jsonrpc|id)"\s*:\s*(?:"[^"]*"|[-\d]+)\s*,)*\s*"method"/.test(head);
  const idFirst = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*,/;
  const idLast = /"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/;
  const [, id] = idFirst.exec(head) ?? idLast.exec(tail) ?? [];
  return { isRequest, id: id === undefined || parseLine(Buffer.from(id)) === undefined ? undefined : id };
}

/** Returns what to do with a line of the client that is too long: a request gets an error. */
export function refuseLongLine(stdout: Writable, log: (text: string) => void): (ends: LineEnds) => undefined {
  return (ends) => {
    const message = `A message of more than ${formatNumber(maxLineBytes)} bytes is not read`;
    log(message);
    const { isRequest, id } = readEnds(ends);
    if (!isRequest || id === undefined) return;
    void writeLine(stdout, renderAnswer(id, { error: { code: -32_600, message } }));
  };
}

/** Returns the line of an answer. `id` is JSON. */
export function renderAnswer(id: string, answer: { readonly result: object } | { readonly error: object }): string {
  return `{"jsonrpc":"2.0","id":${id},${JSON.stringify(answer).slice(1)}\n`;
}

/** Returns the client's name if the message has it: in the handshake, or in each request from revision 2026-07-28
 *  on. */
export function readClientName({ method, params }: RpcMessage): string | undefined {
  const meta = params?._meta;
  const later = isPlainObject(meta) ? meta["io.modelcontextprotocol/clientInfo"] : undefined;
  const info = method === "initialize" ? params?.clientInfo : later;
  return isPlainObject(info) && typeof info.name === "string" ? info.name : undefined;
}

/** From revision 2026-07-28 on, every request names its revision, and every result says that it is one. */
export function isModern({ params }: RpcMessage): boolean {
  const meta = params?._meta;
  return isPlainObject(meta) && "io.modelcontextprotocol/protocolVersion" in meta;
}

/** Returns the text with another value at the path. Everything else keeps its bytes. */
export function replaceAt(text: string, path: readonly string[], json: string): string {
  let range = { start: 0, end: text.length };
  for (const name of path) {
    const found = memberOf(text, range.start, name);
    if (found === undefined) return text;
    range = found.value;
  }
  return applyEdits(text, [{ ...range, text: json }]);
}

/** Returns the edits that remove a member of an object, and its comma. */
export function withoutMember(members: readonly JsonMember[], name: string): JsonEdit[] {
  const at = members.findIndex((member) => member.name === name);
  const found = members[at];
  if (found === undefined) return [];
  const next = members[at + 1];
  if (next !== undefined) return [{ start: found.start, end: next.start, text: "" }];
  return [{ start: members[at - 1]?.end ?? found.start, end: found.end, text: "" }];
}
