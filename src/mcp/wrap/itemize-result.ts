/** What a tool of another server gave, as items that can be paged: the elements of its largest list, or the lines of its largest text.
 *  All else stands in the fields. */

import { hasLongNumbers } from "../../text/index.ts";
import { isObject, type RpcObject } from "../lines/rpc-message.ts";

export interface ItemizedResult {
  readonly fields: RpcObject;
  readonly itemsName: string;
  readonly items: readonly unknown[];
}

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
  return data === undefined ? { fields: {}, itemsName: "lines", items: text.split("\n") } : itemizeData(data);
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
  if (data === undefined) return { fields: {}, itemsName: "lines", items: text.split("\n") };
  const told = shown.filter((each) => !isToldBy(each, data));
  if (told.length === 0) return itemizeData(data);
  // Some clients show the model the text alone: a page of the data must not lack what only the text says.
  return itemizeData({ ...(Array.isArray(data) ? { items: data } : data), text_content: told.join("\n") });
}

function isToldBy(text: string, data: Data): boolean {
  if (text === "" || Object.values(data).includes(text)) return true;
  const parsed = parseData(text);
  if (!isObject(parsed) || !isObject(data)) return sameJson(parsed, data);
  return Object.entries(parsed).every(([name, value]) => sameJson(value, data[name]));
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

function itemizeData(data: Data): ItemizedResult {
  if (Array.isArray(data)) return { fields: {}, itemsName: "items", items: data };
  const root = data as RpcObject;
  const path = largestPath(root);
  const name = path.at(-1);
  if (name === undefined) return { fields: besidePageFacts(root), itemsName: "items", items: [] };
  const part = path.reduce<unknown>((value, key) => (value as RpcObject)[key], root);
  const fields = besidePageFacts(without(root, path));
  if (typeof part === "string") return { fields, itemsName: `${name}_lines`, items: part.split("\n") };
  return { fields, itemsName: name, items: part as unknown[] };
}

/** A page has facts of its own under these names. Lists that are paged already often have some of them, too. */
const pageFacts = ["total", "returned", "offset", "truncated", "warnings"];

function besidePageFacts(fields: RpcObject): RpcObject {
  const names = pageFacts.filter((name) => Object.hasOwn(fields, name));
  if (names.length === 0) return fields;
  const others = Object.entries(fields).filter(([name]) => !names.includes(name));
  return {
    ...Object.fromEntries(others),
    tool_fields: Object.fromEntries(names.map((name) => [name, fields[name]])),
  };
}

/** Down the largest members to a list or a text; empty where there is none. */
function largestPath(root: RpcObject): string[] {
  const path: string[] = [];
  for (let value: unknown = root; isObject(value); ) {
    const sizes = Object.entries(value).map(
      ([name, each]) => [name, JSON.stringify(each)?.length ?? 0] as const,
    );
    const [largest] = sizes.reduce((best, each) => (each[1] > best[1] ? each : best), ["", -1] as const);
    if (largest === "") return [];
    path.push(largest);
    value = value[largest];
    if (Array.isArray(value) || typeof value === "string") return path;
  }
  return [];
}

function without(value: RpcObject, [key = "", ...rest]: readonly string[]): RpcObject {
  if (rest.length > 0) return { ...value, [key]: without(value[key] as RpcObject, rest) };
  const { [key]: _, ...others } = value;
  return others;
}
