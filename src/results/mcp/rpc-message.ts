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

/** The parts of a JSON-RPC message that matter for passing it on. */
export interface RpcMessage {
  /** The JSON of the id, because 1 and "1" are two ids. */
  readonly id?: string | undefined;
  /** The JSON of the id of the cancelled request. */
  readonly cancels?: string | undefined;
  readonly method?: string | undefined;
  readonly params?: RpcObject | undefined;
  readonly result?: RpcObject | undefined;
}

export type RpcObject = Readonly<Record<string, unknown>>;

export interface ParsedLine extends LineValues {
  readonly messages: readonly RpcMessage[];
}

/** Returns undefined if it is not a message or too long for a string. */
export function parseLine(line: Buffer): ParsedLine | undefined {
  const known = parsedLines.get(line);
  if (known !== undefined) return known;
  const values = parseValues(line);
  const parsed = values && { ...values, messages: values.values.map(readMessage) };
  if (parsed !== undefined) parsedLines.set(line, parsed);
  return parsed;
}

/** A line passes several readers. Parsing 100 MB twice would take twice the memory. */
const parsedLines = new WeakMap<Buffer, ParsedLine>();

interface LineValues {
  readonly text: string;
  /** One revision of the protocol allows several messages in a line. */
  readonly isBatch: boolean;
  readonly values: readonly WrittenValue[];
}

export interface WrittenValue {
  readonly value: unknown;
  /** The bytes as they arrived. */
  text(): string;
}

/** Returns undefined if it is not JSON. */
export function parseValues(line: Buffer): LineValues | undefined {
  try {
    const text = line.toString("utf8");
    const value: unknown = JSON.parse(text);
    if (!Array.isArray(value)) return { text, isBatch: false, values: [{ value, text: () => text }] };
    let ranges: readonly JsonRange[] | undefined;
    const textAt = (index: number): string => {
      ranges ??= elementsOf(text, 0);
      const { start, end } = ranges[index]!;
      return text.slice(start, end);
    };
    return {
      text,
      isBatch: true,
      values: value.map((each, at) => ({ value: each, text: () => textAt(at) })),
    };
  } catch {
    return undefined;
  }
}

/** Leaves out malformed parts. The receiver of the message decides about them. */
function readMessage(written: WrittenValue): RpcMessage {
  const { value } = written;
  if (!isPlainObject(value)) return {};
  const { method, params, result } = value;
  return {
    id: idText(written, "id"),
    cancels: method === "notifications/cancelled" ? idText(written, "params", "requestId") : undefined,
    method: typeof method === "string" ? method : undefined,
    params: isPlainObject(params) ? params : undefined,
    result: isPlainObject(result) ? result : undefined,
  };
}

/** Returns the JSON of the id as it is written, if JavaScript would round it, as with ids of 64 bits. */
export function idText(written: WrittenValue, ...names: readonly string[]): string | undefined {
  const id = names.reduce<unknown>((value, name) => (isPlainObject(value) ? value[name] : undefined), written.value);
  if (typeof id === "string" || Number.isSafeInteger(id)) return JSON.stringify(id);
  if (typeof id !== "number") return undefined;
  const text = written.text();
  const range = names.reduce((outer, name) => memberOf(text, outer.start, name)!.value, { start: 0, end: 0 });
  return text.slice(range.start, range.end);
}

/** Returns what a message is, from the ends of its line, and the JSON of its id if that is its first or last member. */
export function readEnds({ head, tail }: LineEnds): { readonly isRequest: boolean; readonly id?: string | undefined } {
  const isRequest = /^\s*\{(?:\s*"(?:jsonrpc|id)"\s*:\s*(?:"[^"]*"|[-\d]+)\s*,)*\s*"method"/.test(head);
  const idFirst = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*,/;
  const idLast = /"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/;
  const [, id] = idFirst.exec(head) ?? idLast.exec(tail) ?? [];
  return { isRequest, id: id === undefined || parseValues(Buffer.from(id)) === undefined ? undefined : id };
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

/** A message and its JSON. */
export interface WrittenMessage {
  readonly message: RpcMessage;
  readonly text: string;
}

/** Returns each message of a line. Other lines have none. */
export function parseRpcMessages(line: Buffer): WrittenMessage[] {
  const parsed = parseLine(line);
  if (parsed === undefined) return [];
  const { text, isBatch, messages } = parsed;
  if (!isBatch) return [{ message: messages[0]!, text }];
  const texts = elementsOf(text, 0).map(({ start, end }) => `${text.slice(start, end)}\n`);
  return messages.map((message, index) => ({ message, text: texts[index]! }));
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
