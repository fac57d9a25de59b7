/** Where pages come from: a tool that runs now, a given result, or a stored one. */

import {
  type BudgetedTool,
  isFailure,
  type ToolArguments,
  type ToolFailure,
  type ToolResult,
} from "./budgeted-tool.ts";
import {
  type ContinuedCall,
  type OffsetTokens,
  type Position,
  parseToken,
  renderToken,
  type SeenVersions,
} from "./continuations.ts";
import { plainItem, stoppedWarning } from "./envelope.ts";
import { chunkItems } from "./item-chunks.ts";
import type { Page, PageSource } from "./render-page.ts";
import type { ResultToStore, StoredReference, StoredResult, StoredResults } from "./stored-results.ts";

export interface Opened {
  readonly source: PageSource;
  /** The tool whose result this is, and the arguments of its call. */
  readonly tool: string;
  readonly args: ToolArguments;
  /** Returns what to store once the page is known. */
  finish(page: Page): Promise<ResultToStore | StoredReference>;
}

export interface Origin {
  /** The id of the delivery. */
  readonly id: string;
  readonly tool: string;
  readonly args: ToolArguments;
}

/** What results are opened from. */
export interface SourceParts {
  readonly results: StoredResults;
  readonly versions: SeenVersions;
  readonly offsetTokens: OffsetTokens;
}

/** Opens a result of our own tools. Each page runs the tool again with another offset. The page is stored, so that it can
 *  be recalled and a cut item can be continued. */
export async function openToolResult(
  { versions, offsetTokens }: SourceParts,
  result: ToolResult,
  { id, tool, args }: Origin,
): Promise<Opened> {
  await offsetTokens.refresh();
  const { itemsName, offset, version } = result;
  const seen = { tool, args, offset, version };
  const fields = encodeFields(result.fields);
  const changedWarning =
    "The result changed after the previous page: items may be missing or repeated. Start again without offset.";
  const source: PageSource = {
    ...result,
    fields,
    warnings: () => [...(versions.isChanged(seen) ? [changedWarning] : []), ...listWarnings(result)],
    tokenAt: (position) => offsetTokens.tokenAt({ id, tool, args }, position),
  };
  const finish = async ({ items: paged, data, nextToken }: Page): Promise<ResultToStore> => {
    if (nextToken !== undefined) versions.remember(seen);
    await offsetTokens.given({ tool, args }, data.continuation_token);
    const items = await chunkItems(paged, offset);
    return { tool, args, fields, itemsName, offset, items, total: data.total, nextToken };
  };
  return { source, tool, args, finish };
}

/** Opens a result that no tool can return again, so all of it is stored. Its items are read and encoded once. */
export async function openGivenResult(result: ToolResult, { id, tool, args }: Origin): Promise<Opened> {
  const { itemsName, offset } = result;
  const items = await chunkItems(result.items, offset);
  const { count, failure } = items;
  if (failure !== undefined && count === 0) throw failure;
  const fields = encodeFields(result.fields);
  const total = offset + count;
  const stopped = failure === undefined ? [] : [stoppedWarning(count, failure)];
  const source: PageSource = {
    ...result,
    fields,
    items: items.items(),
    total,
    more: false,
    warnings: [...listWarnings(result), ...stopped],
    tokenAt: (position) => renderToken({ id, position }),
  };
  const finish = async (): Promise<ResultToStore> => ({ tool, args, fields, itemsName, offset, items, total });
  return { source, tool, args, finish };
}

/** Opens the page of a token. */
export async function openToken(sources: SourceParts, token: string): Promise<Opened | ToolFailure> {
  const { id, position } = parseToken(token) ?? {};
  if (id !== undefined) return openStored(sources, id, position);
  const hint =
    position?.at === "items"
      ? `Call the tool itself again with offset=${position.offset}.`
      : "Pass the continuation_token of a result unchanged, such as k3vbq5zoha:offset:100.";
  return { code: "invalid_token", message: `${JSON.stringify(token)} is not a token of a stored result`, hint };
}

/** Opens a page of a stored result: at the given place, or where the earlier page began. */
export async function openStored(
  { results, offsetTokens }: SourceParts,
  id: string,
  wanted: Position | undefined,
): Promise<Opened | ToolFailure> {
  await offsetTokens.refresh();
  const found = await results.find(id);
  if (isFailure(found)) return found;
  const { stored, position = { at: "items", offset: stored.offset } } = found;
  return openPage({ stored, id: found.id, offsetTokens }, wanted ?? position);
}

/** Returns the lines of a stored result, as its text form shows them. `renderText` is the form of its tool. */
export async function readStoredLines(
  { results }: SourceParts,
  id: string,
  renderText: (tool: string) => BudgetedTool["renderText"],
): Promise<AsyncIterable<string> | ToolFailure> {
  const found = await results.find(id);
  if (isFailure(found)) return found;
  const render = renderText(found.stored.tool);
  return render === undefined ? renderPlainLines(found.stored) : renderLines(found.stored, render);
}

/** Returns the text of a stored result and the call that made it; undefined if it is not there. */
export async function readStored(
  results: StoredResults,
  id: string,
): Promise<{ readonly call: string; readonly text: string } | undefined> {
  const found = await results.find(id);
  if (isFailure(found)) return undefined;
  const lines: string[] = [];
  for await (const line of renderPlainLines(found.stored)) lines.push(line);
  return { call: found.stored.tool, text: lines.join("\n") };
}

/** Only pages are stored of tools with a text form, so there is little to render. */
async function* renderLines(
  { fields, itemsName, offset, items }: StoredResult,
  render: NonNullable<BudgetedTool["renderText"]>,
): AsyncGenerator<string> {
  const all: unknown[] = [];
  for await (const item of items(offset)) all.push(item);
  yield* render({ ...fields, [itemsName]: all, returned: all.length, offset, truncated: false }).split("\n");
}

async function* renderPlainLines({ fields, fieldsText, offset, items }: StoredResult): AsyncGenerator<string> {
  if (Object.keys(fields).length > 0) yield fieldsText;
  for await (const item of items(offset)) yield* (typeof item === "string" ? item : JSON.stringify(item)).split("\n");
}

/** Returns the call that a token continues, if the items are not stored and the tool has to be called. */
export async function findContinuedCall(
  { results, offsetTokens }: SourceParts,
  token: string,
): Promise<ContinuedCall | ToolFailure | undefined> {
  const { id, position } = parseToken(token) ?? {};
  if (position?.at !== "items") return undefined;
  const { offset } = position;
  if (id === undefined) {
    const call = await offsetTokens.find(offset);
    return call === undefined || isFailure(call) ? call : { tool: call.tool, args: { ...call.args, offset } };
  }
  const found = await results.load(id);
  if (found === undefined || found === "dropped" || "of" in found) return undefined;
  const end = findStoredEnd(found);
  if (end === undefined || offset < end) return undefined;
  return { tool: found.tool, args: { ...found.args, offset } };
}

/** Returns the offset after the last stored item, or undefined if nothing follows. */
function findStoredEnd({ nextToken }: StoredResult): number | undefined {
  const position = nextToken === undefined ? undefined : parseToken(nextToken)?.position;
  return position?.at === "items" ? position.offset : undefined;
}

function openPage(
  { stored, id, offsetTokens }: { stored: StoredResult; id: string; offsetTokens: OffsetTokens },
  position: Position,
): Opened {
  const { tool, args, fields, fieldsText, itemsName, nextToken, total } = stored;
  const finish = async ({ data }: Page): Promise<StoredReference> => {
    await offsetTokens.given({ tool, args }, data.continuation_token);
    return { of: id, position };
  };
  // Opens the JSON of the fields as one long text.
  if (position.at === "fields")
    return {
      source: {
        fields: {},
        itemsName: "json",
        items: [fieldsText],
        offset: 0,
        start: { at: "text", from: position.from },
        isFieldsText: true,
        tokenAt: (next) => renderToken({ id, position: { at: "fields", from: "from" in next ? next.from : 0 } }),
      },
      tool,
      args,
      finish,
    };
  const offset = Math.max(position.offset, stored.offset);
  /** Continues with the tool, where the items end or where the page begins. */
  const findNextToken = (): string | undefined => {
    const end = findStoredEnd(stored);
    if (end === undefined) return nextToken;
    if (offset > end && total !== undefined && offset >= total) return undefined;
    return offsetTokens.tokenAt({ id, tool, args }, { at: "items", offset: Math.max(offset, end) });
  };
  const source: PageSource = {
    fields,
    itemsName,
    items: stored.items(offset),
    offset,
    total,
    more: false,
    nextToken: findNextToken(),
    start: position.at === "items" ? undefined : position,
    tokenAt: (position) => renderToken({ id, position }),
  };
  return { source, tool, args, finish };
}

function encodeFields(fields: ToolResult["fields"]): ToolResult["fields"] {
  const plain = (value: unknown): unknown => (typeof value === "string" ? value : plainItem(value).item);
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, plain(value)]));
}

function listWarnings({ warnings = [] }: ToolResult): readonly string[] {
  return typeof warnings === "function" ? warnings() : warnings;
}
