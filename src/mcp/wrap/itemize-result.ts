/** What a tool of another server gave, as items that can be paged: the elements of its largest list, the lines of its largest text, or
 *  the members of an object that has many and no large one. All else stands in the fields. */

import { frameNames } from "../../session/index.ts";
import { hasLongNumbers, type JsonMember, membersOf } from "../../text/index.ts";
import { isObject, type RpcObject } from "../lines/rpc-message.ts";

export interface ItemizedResult {
  readonly fields: RpcObject;
  readonly itemsName: string;
  readonly items: Iterable<unknown>;
}

/** Every page says by it that the tool had failed. */
export const errorField = "tool_error";

export interface RawResult {
  readonly result: RpcObject;
  /** The structured content as it was written. */
  readonly structuredText?: string | undefined;
}

export function itemizeResult({ result, structuredText }: RawResult): ItemizedResult {
  const blocks = blocksOf(result);
  const texts = blocks.filter((block) => !isMedia(block));
  if (structuredText !== undefined) return itemizeStructured(result, structuredText, texts.map(textOf));
  const [only] = texts;
  if (only?.type !== "text" || blocks.length > 1)
    return { fields: {}, itemsName: "blocks", items: blocks.map(blockItem) };
  const text = textOf(only);
  const data = parseData(text);
  return data === undefined ? itemizeLines(text) : itemizeData(data, text);
}

export function blocksOf({ content }: RpcObject): readonly RpcObject[] {
  return Array.isArray(content) ? content.filter(isObject) : [];
}

/** What is no text: it costs tokens by another measure, and cannot be cut. */
export function isMedia({ type, resource }: RpcObject): boolean {
  return type === "image" || type === "audio" || (isObject(resource) && typeof resource.blob === "string");
}

/** As a client shows it. */
export function textOf(block: RpcObject): string {
  return block.type === "text" && typeof block.text === "string" ? block.text : JSON.stringify(block);
}

function blockItem(block: RpcObject): unknown {
  if (block.type === "text") return textOf(block);
  if (!isMedia(block)) return block;
  const { data, resource, ...facts } = block;
  return { ...facts, note: "stands beside the first page" };
}

type Data = RpcObject | readonly unknown[];

function itemizeStructured(result: RpcObject, text: string, shown: readonly string[]): ItemizedResult {
  const data = hasLongNumbers(text) ? undefined : (result.structuredContent as Data);
  if (data === undefined) return itemizeLines(text);
  const told = shown.filter((each) => !isToldBy(each, data, text)).join("\n");
  if (told.length > largestSize(data, text)) {
    const fields = besideFrame(Array.isArray(data) ? { items: data } : (data as RpcObject));
    return { fields, itemsName: "text_content_lines", items: linesOf(told) };
  }
  const itemized = itemizeData(data, text);
  // Some clients show the model the text alone: a page of the data must not lack what only the text says.
  return told === "" ? itemized : { ...itemized, fields: { ...itemized.fields, text_content: told } };
}

/** Of what would be paged, as it is written. */
function largestSize(data: Data, text: string): number {
  return Array.isArray(data) || isManyMembers(text, 0, text.length)
    ? text.length
    : sizeOf(largestMember(membersOf(text, 0)));
}

function isToldBy(text: string, data: Data, dataText: string): boolean {
  if (text === "" || Object.values(data).includes(text) || isWrittenIn(text, dataText)) return true;
  const parsed = parseData(text);
  if (!isObject(parsed) || !isObject(data)) return sameJson(parsed, data);
  return Object.entries(parsed).every(([name, value]) => sameJson(value, data[name]));
}

/** Whether it is the same text, or some of its members: most servers write both forms alike, and then nothing large is parsed. */
function isWrittenIn(text: string, dataText: string): boolean {
  if (text === dataText) return true;
  const isObjects = text.startsWith("{") && text.endsWith("}") && dataText.startsWith("{");
  if (!isObjects || text.length === 2) return false;
  const members = membersOf(dataText, 0);
  const inner = text.slice(1, -1);
  const ends = new Set(members.map(({ end }) => end));
  return members.some(({ start }) => ends.has(start + inner.length) && dataText.startsWith(inner, start));
}

function sameJson(left: unknown, right: unknown): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}

function parseData(text: string): Data | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return hasLongNumbers(text) ? undefined : (value as Data);
  } catch {
    return undefined;
  }
}

function itemizeLines(text: string): ItemizedResult {
  return { fields: {}, itemsName: "lines", items: linesOf(text) };
}

/** One by one: a list of the ten million lines that 100 MB may have would take several times as much. */
function linesOf(text: string): Iterable<string> {
  return {
    *[Symbol.iterator]() {
      let start = 0;
      for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
        yield text.slice(start, end);
        start = end + 1;
      }
      yield text.slice(start);
    },
  };
}

/** `text` is what the data was written as. */
function itemizeData(data: Data, text: string): ItemizedResult {
  if (Array.isArray(data)) return { fields: {}, itemsName: "items", items: data };
  const root = data as RpcObject;
  const path = largestPath(root, text);
  if (path === undefined) return { fields: besideFrame(root), itemsName: "items", items: [] };
  const part = path.reduce<unknown>((value, key) => (value as RpcObject)[key], root);
  const fields = path.length === 0 ? {} : besideFrame(without(root, path));
  const name = path.at(-1) ?? "members";
  if (typeof part === "string") return { fields, itemsName: `${name}_lines`, items: linesOf(part) };
  return { fields, itemsName: name, items: isObject(part) ? memberItems(part) : (part as unknown[]) };
}

/** An object each, which together are the object. */
function memberItems(object: RpcObject): RpcObject[] {
  return Object.entries(object).map(([name, value]) => ({ [name]: value }));
}

/** A page has facts of its own under these names. Lists that are paged already often have some of them, too. */
function besideFrame(fields: RpcObject): RpcObject {
  const names = Object.keys(fields).filter((name) => frameNames.has(name) || name === errorField);
  if (names.length === 0) return fields;
  const others = Object.entries(fields).filter(([name]) => !names.includes(name));
  return {
    ...Object.fromEntries(others),
    tool_fields: Object.fromEntries(names.map((name) => [name, fields[name]])),
  };
}

/** Down the largest members, as they are written, to a list, a text, or an object of many members; undefined where there is none. */
function largestPath(root: RpcObject, text: string): string[] | undefined {
  const path: string[] = [];
  let [start, end] = [0, text.length];
  for (let value: unknown = root; isObject(value); ) {
    if (isManyMembers(text, start, end)) return path;
    const largest = largestMember(membersOf(text, start));
    if (largest === undefined) return undefined;
    path.push(largest.name);
    [start, end] = [largest.value.start, largest.value.end];
    value = value[largest.name];
    if (Array.isArray(value) || typeof value === "string") return path;
  }
  return undefined;
}

/** What is shorter can be fields of every page. */
const mostFieldsCharacters = 2_000;
/** A member with a smaller share of its object is not what the object is about. */
const leastShare = 0.1;

function isManyMembers(text: string, start: number, end: number): boolean {
  const size = end - start;
  return size > mostFieldsCharacters && sizeOf(largestMember(membersOf(text, start))) < size * leastShare;
}

/** Of a name that comes twice the last one counts. */
function largestMember(members: readonly JsonMember[]): JsonMember | undefined {
  const byName = new Map(members.map((member) => [member.name, member]));
  return [...byName.values()].reduce<JsonMember | undefined>(
    (best, each) => (sizeOf(each) > sizeOf(best) ? each : best),
    undefined,
  );
}

function sizeOf(member: JsonMember | undefined): number {
  return member === undefined ? 0 : member.value.end - member.value.start;
}

function without(value: RpcObject, [key = "", ...rest]: readonly string[]): RpcObject {
  if (rest.length > 0) return { ...value, [key]: without(value[key] as RpcObject, rest) };
  const { [key]: _, ...others } = value;
  return others;
}
