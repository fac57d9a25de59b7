import { elementsOf, type JsonRange, memberOf } from "../../text/index.ts";

/** What of a JSON-RPC message matters to whoever only passes it on. */
export interface RpcMessage {
  /** Its JSON: 1 and "1" are two ids. */
  readonly id?: string | undefined;
  /** The id of the request that is taken back, its JSON. */
  readonly cancels?: string | undefined;
  readonly method?: string | undefined;
  readonly params?: RpcObject | undefined;
  readonly result?: RpcObject | undefined;
}

export type RpcObject = Readonly<Record<string, unknown>>;

export interface ParsedLine extends LineValues {
  readonly messages: readonly RpcMessage[];
}

/** Undefined for what is no message, or longer than a string can be. */
export function parseLine(line: Buffer): ParsedLine | undefined {
  const parsed = parseValues(line);
  return parsed && { ...parsed, messages: parsed.values.map(readMessage) };
}

export interface LineValues {
  readonly text: string;
  /** One revision of the protocol allows several messages in a line. */
  readonly isBatch: boolean;
  readonly values: readonly WrittenValue[];
}

export interface WrittenValue {
  readonly value: unknown;
  /** As it came. */
  text(): string;
}

/** Undefined for what is no JSON. */
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

/** What is not as it should be is left out: whoever gets the message may judge it, we do not. */
function readMessage(written: WrittenValue): RpcMessage {
  const { value } = written;
  if (!isObject(value)) return {};
  const { method, params, result } = value;
  return {
    id: idText(written, "id"),
    cancels: method === "notifications/cancelled" ? idText(written, "params", "requestId") : undefined,
    method: typeof method === "string" ? method : undefined,
    params: isObject(params) ? params : undefined,
    result: isObject(result) ? result : undefined,
  };
}

/** The JSON of the id that stands there: as it is written where JavaScript would round it, as it does with ids of 64 bits. */
export function idText(written: WrittenValue, ...names: readonly string[]): string | undefined {
  const id = names.reduce<unknown>(
    (value, name) => (isObject(value) ? value[name] : undefined),
    written.value,
  );
  if (typeof id === "string" || Number.isSafeInteger(id)) return JSON.stringify(id);
  if (typeof id !== "number") return undefined;
  const text = written.text();
  const range = names.reduce((outer, name) => memberOf(text, outer.start, name)!.value, { start: 0, end: 0 });
  return text.slice(range.start, range.end);
}

/** The line of an answer. `id` is JSON. */
export function renderAnswer(
  id: string,
  answer: { readonly result: object } | { readonly error: object },
): string {
  return `{"jsonrpc":"2.0","id":${id},${JSON.stringify(answer).slice(1)}\n`;
}

export function isObject(value: unknown): value is RpcObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The client's name, where a message tells it: in the handshake, or from revision 2026-07-28 on with each request. */
export function clientNameOf({ method, params }: RpcMessage): string | undefined {
  const meta = params?._meta;
  const told =
    method === "initialize" ? params?.clientInfo : isObject(meta) ? meta[clientInfoKey] : undefined;
  return isObject(told) && typeof told.name === "string" ? told.name : undefined;
}

const clientInfoKey = "io.modelcontextprotocol/clientInfo";

/** From revision 2026-07-28 on every request names its revision, and every result says that it is one. */
export function isModern({ params }: RpcMessage): boolean {
  const meta = params?._meta;
  return isObject(meta) && "io.modelcontextprotocol/protocolVersion" in meta;
}
