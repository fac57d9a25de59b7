/** Splits a result of another server's tool into items for pages: the elements of its largest list, the lines of its
 *  largest text, or the members of an object with many small members. Everything else becomes fields. */

import {
  applyEdits,
  elementsOf,
  formatNumber,
  hasLongNumbers,
  isPlainObject,
  type JsonEdit,
  type JsonMember,
  type JsonRange,
  memberOf,
  membersOf,
  shorten,
} from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import {
  type CallShare,
  type Delivered,
  frameNames,
  type PageFormat,
  type PageLimit,
  type Session,
  shareOfLimit,
} from "../session/index.ts";
import type { Background } from "./line-proxy.ts";
import { type RpcObject, withoutMember } from "./rpc-message.ts";
import type { ServerRecorder } from "./running-servers.ts";

interface ItemizedResult {
  readonly fields: RpcObject;
  readonly itemsName: string;
  readonly items: Iterable<unknown>;
}

/** A field of every page that says that the tool failed. */
export const errorField = "tool_error";

export interface RawResult {
  readonly result: RpcObject;
  /** The structured content as it was written. */
  readonly structuredText?: string | undefined;
}

export function itemizeResult({ result, structuredText }: RawResult): ItemizedResult {
  const blocks = readBlocks(result);
  const texts = blocks.filter((block) => !isMedia(block));
  if (structuredText !== undefined) return itemizeStructured(result, structuredText, texts.map(renderBlock));
  const [only, ...others] = texts;
  if (blocks.length === 0) return { fields: {}, itemsName: "lines", items: [] };
  if (only?.type !== "text" || others.length > 0) return itemizeLines(joinBlocks(blocks));
  const text = renderBlock(only);
  const data = parseData(text);
  if (data === undefined) return itemizeLines(joinBlocks(blocks));
  const itemized = itemizeData(data, text);
  const media = blocks.filter(isMedia).map(describeMedia);
  return media.length === 0 ? itemized : { ...itemized, fields: { media, ...itemized.fields } };
}

/** Joins the blocks as lines. Short ones come first: they say what the others are, or what a tool did. The text of a file
 *  is below a line of JSON with its other facts. */
function joinBlocks(blocks: readonly RpcObject[]): string {
  const texts = blocks.map((block) => {
    if (isMedia(block)) return JSON.stringify(describeMedia(block));
    const { resource } = block;
    if (!isPlainObject(resource) || typeof resource.text !== "string") return renderBlock(block);
    const { text, ...facts } = resource;
    return `${JSON.stringify({ ...block, resource: facts })}\n${text}`;
  });
  const isShort = (text: string) => text.length <= 2_000;
  return [...texts.filter(isShort), ...texts.filter((text) => !isShort(text))].join("\n");
}

function describeMedia({ data, resource, ...facts }: RpcObject): RpcObject {
  return { ...facts, note: "sent with the first page" };
}

function readBlocks({ content }: RpcObject): readonly RpcObject[] {
  return Array.isArray(content) ? content.filter(isPlainObject) : [];
}

/** Content other than text. It costs tokens by another measure and cannot be cut. */
function isMedia({ type, resource }: RpcObject): boolean {
  return type === "image" || type === "audio" || (isPlainObject(resource) && typeof resource.blob === "string");
}

/** The text as a client shows it. */
function renderBlock(block: RpcObject): string {
  return block.type === "text" && typeof block.text === "string" ? block.text : JSON.stringify(block);
}

type Data = RpcObject | readonly unknown[];

function itemizeStructured(result: RpcObject, text: string, texts: readonly string[]): ItemizedResult {
  const data = hasLongNumbers(text) ? undefined : (result.structuredContent as Data);
  if (data === undefined) return itemizeLines(text);
  const uncovered = texts.filter((each) => !isCovered(each, data, text)).join("\n");
  // Characters of what would be paged, as written.
  const size =
    Array.isArray(data) || isManyMembers(text, 0, text.length)
      ? text.length
      : measure(largestMember(membersOf(text, 0)));
  if (uncovered.length > size) {
    const fields = avoidFrameNames(Array.isArray(data) ? { items: data } : (data as RpcObject));
    return { fields, itemsName: "text_content_lines", items: splitText(uncovered) };
  }
  const itemized = itemizeData(data, text);
  // Some clients show the model only the text, so a page of the data must include what only the text has.
  return uncovered === "" ? itemized : { ...itemized, fields: { ...itemized.fields, text_content: uncovered } };
}

function isCovered(text: string, data: Data, dataText: string): boolean {
  if (text === "" || Object.values(data).includes(text) || isWrittenIn(text, dataText)) return true;
  const parsed = parseData(text);
  if (!isPlainObject(parsed) || !isPlainObject(data)) return sameJson(parsed, data);
  return Object.entries(parsed).every(([name, value]) => sameJson(value, data[name]));
}

/** Returns whether the JSON `text` is the same as `dataText`, or is an object whose members stand together in
 *  `dataText`. Compares text, because most servers write both forms alike and large ones then need no parsing. */
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
  return { fields: {}, itemsName: "lines", items: splitText(text) };
}

/** One by one, because a list of the ten million lines of 100 MB would take several times the memory. */
function splitText(text: string): Iterable<string> {
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

/** `text` is the JSON of the data. */
function itemizeData(data: Data, text: string): ItemizedResult {
  if (Array.isArray(data)) return { fields: {}, itemsName: "items", items: data };
  const root = data as RpcObject;
  const path = largestPath(root, text);
  if (path === undefined) return { fields: avoidFrameNames(root), itemsName: "items", items: [] };
  const part = path.reduce<unknown>((value, key) => (value as RpcObject)[key], root);
  const fields = path.length === 0 ? {} : avoidFrameNames(without(root, path));
  const name = path.at(-1) ?? "members";
  if (typeof part === "string") return { fields, itemsName: `${name}_lines`, items: splitText(part) };
  return {
    fields,
    itemsName: name,
    items: isPlainObject(part) ? Object.entries(part).map(([name, value]) => ({ [name]: value })) : (part as unknown[]),
  };
}

/** A page uses these names for its own facts. Paged lists of other servers often have some of them too. */
function avoidFrameNames(fields: RpcObject): RpcObject {
  const names = Object.keys(fields).filter((name) => frameNames.has(name) || name === errorField);
  if (names.length === 0) return fields;
  const others = Object.entries(fields).filter(([name]) => !names.includes(name));
  return {
    ...Object.fromEntries(others),
    tool_fields: Object.fromEntries(names.map((name) => [name, fields[name]])),
  };
}

/** Follows the largest members, as written, down to a list, a text, or an object with many members. Returns undefined
 *  if there is none. */
function largestPath(root: RpcObject, text: string): string[] | undefined {
  const path: string[] = [];
  let [start, end] = [0, text.length];
  for (let value: unknown = root; isPlainObject(value); ) {
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

function isManyMembers(text: string, start: number, end: number): boolean {
  const size = end - start;
  // Shorter members can be fields of every page, and a member with a smaller share is not the main content.
  return size > 2_000 && measure(largestMember(membersOf(text, start))) < size * 0.1;
}

/** If a name occurs twice, the last one counts. */
function largestMember(members: readonly JsonMember[]): JsonMember | undefined {
  const byName = new Map(members.map((member) => [member.name, member]));
  return [...byName.values()].reduce<JsonMember | undefined>(
    (best, each) => (measure(each) > measure(best) ? each : best),
    undefined,
  );
}

function measure(member: JsonMember | undefined): number {
  return member === undefined ? 0 : member.value.end - member.value.start;
}

function without(value: RpcObject, [key = "", ...rest]: readonly string[]): RpcObject {
  if (rest.length > 0) return { ...value, [key]: without(value[key] as RpcObject, rest) };
  const { [key]: _, ...others } = value;
  return others;
}

export interface Paging {
  readonly session: Session;
  readonly counter: Counter;
  readonly background: Background;
  pageLimit(): PageLimit;
  /** Called when a page was sent. */
  gave(page: Delivered): void;
  /** What the client has to know. Returned once. */
  takeNotice(): string | undefined;
  /** How pages are shown. @default "json" */
  readonly format?: PageFormat | undefined;
  /** Whether the client gets a short preview instead of the first page. */
  isPreviewed?: (() => boolean) | undefined;
  /** Returns the name of one of our tools as the model sees it. */
  ownName(tool: "next_page" | "recall"): string;
  readonly recorder?: ServerRecorder | undefined;
  /** Limits how long a large result waits for the sizes of parallel calls. */
  patience?: (() => Promise<void>) | undefined;
}

export interface ResultCall {
  readonly tool: string;
  readonly args: RpcObject;
  /** Since the call was sent to the server. */
  readonly share?: CallShare | undefined;
}

export interface PagedCall {
  readonly paging: Paging;
  readonly call: ResultCall;
}

/** Returns the message of a tool's result: unchanged if it fits, otherwise with the first page as its content. Either
 *  way the session stores it for the account and for recall. An unchanged message does not wait for the disk. */
export async function pageResult(message: string, result: RpcObject, { paging, call }: PagedCall): Promise<string> {
  const share = call.share ?? paging.session.beginCall(call.tool);
  try {
    const text = await fitResult(message, result, { paging, call, share });
    const notice = paging.takeNotice();
    return notice === undefined ? text : addNotice(text, notice);
  } catch (error) {
    share.end();
    throw error;
  }
}

async function fitResult(
  message: string,
  result: RpcObject,
  { paging, call: { tool, args }, share }: PagedCall & { readonly share: CallShare },
): Promise<string> {
  const places = locate(message, result);
  const itemized = itemizeResult({ result, structuredText: places.structuredText });
  // First, so that no other field takes its room.
  const fields = result.isError === true ? { [errorField]: true, ...itemized.fields } : itemized.fields;
  const deliver = (shownTokens?: number): Promise<Delivered> =>
    paging.session.deliver({ ...itemized, fields, offset: 0 }, { tool, args, share, shownTokens });
  const media = readBlocks(result).filter(isMedia);
  const mediaTokens = media.length === 0 ? 0 : await countImages(media, paging.counter);
  const texts = [joinTexts(result), places.structuredText ?? ""];
  const tokens = countUnchanged(texts, share, paging);
  const granted = await share.settle(tokens ?? share.mostTokens, paging.patience);
  if (tokens !== undefined && granted >= tokens) {
    await paging.background.add(() => deliver(tokens + mediaTokens));
    paging.recorder?.add({ results: 1, shown: tokens });
    return message;
  }
  await paging.background.settled();
  const preview = paging.isPreviewed?.() === true ? createPreview(result, { itemized, places, paging }) : undefined;
  const page = await deliver(preview && paging.counter.count(preview("k3vbq5zoha", 0)) + mediaTokens);
  const { envelope, id } = page;
  if (envelope.status === "error") return message;
  paging.gave(page);
  const text = preview?.(id, envelope.data.total) ?? page.text;
  const shown = paging.counter.count(text);
  const whole = tokens ?? Math.max(...texts.map((each) => estimateTokens(each, paging.counter)));
  paging.recorder?.add({ results: 1, shown, saved: Math.max(0, whole - shown) });
  // Images and other media stay.
  const edits: JsonEdit[] = [];
  if (places.content !== undefined) {
    edits.push({ ...places.content, text: JSON.stringify([{ type: "text", text }, ...media]) });
  }
  // As text, only the text: some clients would show the model the structured content instead.
  if (paging.format === "text") edits.push(...withoutMember(places.members, "structuredContent"));
  // Only if the result had structured content: clients that show only that would no longer show images.
  else if (places.structured !== undefined) edits.push({ ...places.structured, text });
  return applyEdits(message, edits);
}

/** Counts the first part of a long text, because counting all of it would take longer than paging it. */
function estimateTokens(text: string, counter: Counter): number {
  const sample = text.slice(0, 20_000);
  return Math.round(counter.count(sample) * (text.length / Math.max(1, sample.length)));
}

/** Returns what images cost a model. Other media have no known price. */
async function countImages(media: readonly RpcObject[], counter: Counter): Promise<number> {
  const { countMessages } = await import("../../core/messages/index.ts");
  const content = media.flatMap(({ type, data, mimeType }) =>
    type === "image" ? [{ type, source: { type: "base64", media_type: mimeType, data } }] : [],
  );
  return countMessages([{ role: "user", content }], counter, { format: "anthropic" });
}

/** Returns a function that renders what a result has: its keys or columns, its first items, its size and its id. */
function createPreview(
  result: RpcObject,
  parts: {
    readonly itemized: ItemizedResult;
    readonly places: ReturnType<typeof locate>;
    readonly paging: Paging;
  },
): (id: string, total: number | undefined) => string {
  const { itemized, places, paging } = parts;
  const { items, itemsName, fields } = itemized;
  const bytes = Math.max(Buffer.byteLength(joinTexts(result)), Buffer.byteLength(places.structuredText ?? ""));
  const [first] = items;
  const shape = isPlainObject(first) ? [`columns: ${Object.keys(first).join(", ")}`] : [];
  if (Object.keys(fields).length > 0) shape.push(`other keys: ${Object.keys(fields).join(", ")}`);
  const facts = shape.map((line) => shorten(line, 400));
  return (id, total) => {
    const count = total === undefined ? "" : `${formatNumber(total)} `;
    const size = `${count}${itemsName}, ${formatNumber(Math.ceil(bytes / 1_000))} kB`;
    const next = `next: ${paging.ownName("next_page")} token=${id}:offset:0`;
    const last = `[preview of ${size}; ${next} · search: ${paging.ownName("recall")} id=${id} pattern=… · id ${id}]`;
    const maxBytes = 2_000;
    const room = maxBytes - Buffer.byteLength([...facts, last].join("\n")) - 2;
    return [...facts, takeHead(items, room), last].filter((line) => line !== "").join("\n");
  };
}

/** Returns the first items that fit, each on a line. */
function takeHead(items: Iterable<unknown>, room: number): string {
  const lines: string[] = [];
  let left = room;
  for (const item of items) {
    const line = typeof item === "string" ? item : JSON.stringify(item);
    left -= Math.max(line.length, Buffer.byteLength(line.slice(0, room))) + 1;
    if (left < 0) break;
    lines.push(line);
  }
  const [first] = items;
  if (lines.length > 0 || first === undefined) return lines.join("\n");
  // A character has at most four bytes.
  return `${(typeof first === "string" ? first : JSON.stringify(first)).slice(0, Math.floor(room / 4) - 1)}…`;
}

/** As a text block after the others. */
function addNotice(message: string, notice: string): string {
  const result = memberOf(message, 0, "result");
  const content = result && memberOf(message, result.value.start, "content")?.value;
  if (content === undefined || message[content.start] !== "[") return message;
  const block = JSON.stringify({ type: "text", text: `[plimsoll] ${notice}` });
  const elements = elementsOf(message, content.start);
  const at = elements.at(-1)?.end ?? content.start + 1;
  return applyEdits(message, [{ start: at, end: at, text: elements.length > 0 ? `,${block}` : block }]);
}

/** Finds the parts of the result in its message. */
function locate(message: string, { structuredContent }: RpcObject) {
  const members = membersOf(message, memberOf(message, 0, "result")!.value.start);
  const find = (name: string): JsonRange | undefined => members.findLast((member) => member.name === name)?.value;
  const hasData = typeof structuredContent === "object" && structuredContent !== null;
  const structured = hasData ? find("structuredContent") : undefined;
  return {
    members,
    content: find("content"),
    structured,
    structuredText: structured && message.slice(structured.start, structured.end),
  };
}

/** Joined with the longest separator that clients put between two blocks. */
function joinTexts(result: RpcObject): string {
  const texts = readBlocks(result).filter((block) => !isMedia(block));
  return texts.map(renderBlock).join("\n\n");
}

/** Returns the tokens of a result that can pass unchanged, or undefined if it cannot. A client shows the text or the
 *  structured content. It is unknown which one, so both must fit, and the larger one counts. */
function countUnchanged(
  texts: readonly string[],
  { mostTokens }: CallShare,
  { counter, pageLimit }: Paging,
): number | undefined {
  const limit = pageLimit();
  // A larger result is always paged: counting it would take longer than paging it.
  if (texts.some((text) => text.length > 1_000_000 || shareOfLimit(text, limit) > 1)) return undefined;
  const tokens = Math.max(...texts.map((text) => counter.count(text)));
  return tokens <= mostTokens ? tokens : undefined;
}
