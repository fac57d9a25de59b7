/** Where pages come from: a tool that runs now, a result that is there already, a stored one. */

import { offsetToken, type Position, parseToken, storedToken } from "./pages/continuation.ts";
import type { Page, PageSource } from "./pages/page-source.ts";
import { stoppedWarning } from "./pages/render-page.ts";
import { plainItem } from "./plain-item.ts";
import { chunkItems, givenItems } from "./state/item-chunks.ts";
import type { ContinuedCall, OffsetTokens } from "./state/offset-tokens.ts";
import type { ResultToStore, StoredReference, StoredResult } from "./state/result-record.ts";
import type { SeenVersions } from "./state/seen-versions.ts";
import { type StoredResults, storedLimits } from "./state/stored-results.ts";
import { mostUnusedDays } from "./state/unused-results.ts";
import type { ToolArguments, ToolFailure, ToolResult } from "./tool/budgeted-tool.ts";

export interface Opened {
  readonly source: PageSource;
  /** Whose result it is, and how it was asked for. */
  readonly tool: string;
  readonly args: ToolArguments;
  /** What is to be stored once the page is known. */
  finish(page: Page): Promise<ResultToStore | StoredReference>;
}

export interface Origin {
  /** Of the delivery. */
  readonly id: string;
  readonly tool: string;
  readonly args: ToolArguments;
}

export interface ToolResultOptions {
  readonly versions: SeenVersions;
  readonly offsetTokens: OffsetTokens;
}

/** Items come from the tool, again and again by their offset; stored is the page, so that it can be recalled and a cut item read on. */
export function openToolResult(
  result: ToolResult,
  { id, tool, args }: Origin,
  { versions, offsetTokens }: ToolResultOptions,
): Opened {
  const seen = { tool, args, offset: result.offset, version: result.version };
  const fields = plainFields(result.fields);
  const source: PageSource = {
    ...result,
    fields,
    warnings: () => [...(versions.isChanged(seen) ? [changedWarning] : []), ...warningsOf(result)],
    tokenAt: (position) => tokenOf({ id, tool, args }, position, offsetTokens),
  };
  const finish = async ({ items: paged, data, nextToken }: Page): Promise<ResultToStore> => {
    if (nextToken !== undefined) versions.remember(seen);
    await tellGiven({ tool, args }, data.continuation_token, offsetTokens);
    const { itemsName, offset } = result;
    const items = await chunkItems(paged, offset);
    return { tool, args, fields, itemsName, offset, items, total: data.total, nextToken };
  };
  return { source, tool, args, finish };
}

function tokenOf({ id, ...call }: Origin, position: Position, offsetTokens: OffsetTokens): string {
  return position.at === "items" && offsetTokens.isClear(call, position.offset)
    ? offsetToken(position.offset)
    : storedToken(id, position);
}

async function tellGiven(
  call: ContinuedCall,
  token: string | undefined,
  offsetTokens: OffsetTokens,
): Promise<void> {
  const { id, position } = (token === undefined ? undefined : parseToken(token)) ?? {};
  if (id === undefined && position?.at === "items") await offsetTokens.given(call, position.offset);
}

const changedWarning =
  "The result changed since the page before this one: items may be missing or come twice. Start again without offset.";

/** A result without a tool that gives it again: all of it is stored. Its items are read and encoded once, whatever is shown of them. */
export async function openGivenResult(result: ToolResult, { id, tool, args }: Origin): Promise<Opened> {
  const { itemsName, offset } = result;
  const items = await chunkItems(result.items, offset);
  const { count, failure } = items;
  if (failure !== undefined && count === 0) throw failure;
  const fields = plainFields(result.fields);
  const total = offset + count;
  const stopped = failure === undefined ? [] : [stoppedWarning(count, failure)];
  const source: PageSource = {
    ...result,
    fields,
    items: givenItems(items),
    total,
    more: false,
    warnings: [...warningsOf(result), ...stopped],
    tokenAt: (position) => storedToken(id, position),
  };
  const finish = async (): Promise<ResultToStore> => ({
    tool,
    args,
    fields,
    itemsName,
    offset,
    items,
    total,
  });
  return { source, tool, args, finish };
}

/** A page of a stored result: where the token says, or where an earlier page of it began. */
export async function openStored(
  sources: StoredSources,
  id: string,
  wanted: Position | undefined,
): Promise<Opened | ToolFailure> {
  const { results, offsetTokens } = sources;
  await offsetTokens.refresh();
  const found = await results.load(id);
  if (found === undefined || found === "dropped") return notStored(id, found);
  if (!("of" in found)) {
    return storedPage({ stored: found, id, offsetTokens }, wanted ?? { at: "items", offset: found.offset });
  }
  const stored = await results.load(found.of);
  if (stored === undefined || stored === "dropped") return notStored(found.of, stored);
  if ("of" in stored) return notStored(found.of, undefined);
  return storedPage({ stored, id: found.of, offsetTokens }, wanted ?? found.position);
}

export interface StoredSources {
  readonly results: StoredResults;
  readonly offsetTokens: OffsetTokens;
}

export function openToken(sources: StoredSources, token: string): Promise<Opened | ToolFailure> {
  const continuation = parseToken(token);
  if (continuation?.id !== undefined) return openStored(sources, continuation.id, continuation.position);
  const hint =
    continuation?.position.at === "items"
      ? `Call the tool itself again with offset=${continuation.position.offset}.`
      : "Pass the continuation_token of a result as it is, such as r42:offset:100.";
  const message = `${JSON.stringify(token)} is no token of a stored result`;
  return Promise.resolve({ code: "invalid_token", message, hint });
}

/** The call that a token goes on with, where what it asks for is not stored: the tool gives it. */
export async function continuedCall(
  { results, offsetTokens }: StoredSources,
  token: string,
): Promise<ContinuedCall | ToolFailure | undefined> {
  const { id, position } = parseToken(token) ?? {};
  if (position?.at !== "items") return undefined;
  if (id === undefined) return withOffset(await offsetTokens.find(position.offset), position.offset);
  const found = await results.load(id);
  if (found === undefined || found === "dropped" || "of" in found) return undefined;
  const end = storedEnd(found);
  if (end === undefined || position.offset < end) return undefined;
  return withOffset(found, position.offset);
}

function withOffset<Other>(call: ContinuedCall | Other, offset: number): ContinuedCall | Other {
  if (typeof call !== "object" || call === null || !("args" in call)) return call;
  return { tool: call.tool, args: { ...call.args, offset } };
}

/** The offset behind the last item that is stored; undefined where no other follows. */
function storedEnd({ nextToken }: StoredResult): number | undefined {
  const position = nextToken === undefined ? undefined : parseToken(nextToken)?.position;
  return position?.at === "items" ? position.offset : undefined;
}

/** What a page of stored items goes on with: the tool, from where the items end, or from further on where the page begins there. */
function tokenBehind({ stored, id, offsetTokens }: StoredPlace, offset: number): string | undefined {
  const { tool, args, nextToken, total } = stored;
  const end = storedEnd(stored);
  if (end === undefined) return nextToken;
  if (offset > end && total !== undefined && offset >= total) return undefined;
  return tokenOf({ id, tool, args }, { at: "items", offset: Math.max(offset, end) }, offsetTokens);
}

interface StoredPlace {
  readonly stored: StoredResult;
  readonly id: string;
  readonly offsetTokens: OffsetTokens;
}

function storedPage(place: StoredPlace, position: Position): Opened {
  const { stored, id, offsetTokens } = place;
  const { tool, args, fieldsText } = stored;
  const finish = async ({ data }: Page): Promise<StoredReference> => {
    await tellGiven({ tool, args }, data.continuation_token, offsetTokens);
    return { of: id, position };
  };
  if (position.at === "fields") return { source: fieldsSource(fieldsText, id, position), tool, args, finish };
  const offset = Math.max(position.offset, stored.offset);
  const source: PageSource = {
    fields: stored.fields,
    itemsName: stored.itemsName,
    items: stored.items(offset),
    offset,
    total: stored.total,
    more: false,
    nextToken: tokenBehind(place, offset),
    start: position.at === "items" ? undefined : position,
    tokenAt: (next) => storedToken(id, next),
  };
  return { source, tool, args, finish };
}

/** The fields' JSON as one long text. */
function fieldsSource(text: string, id: string, { from }: { from: number }): PageSource {
  return {
    fields: {},
    itemsName: "json",
    items: [text],
    offset: 0,
    start: { at: "text", from },
    isFieldsText: true,
    tokenAt: (next) => storedToken(id, { at: "fields", from: "from" in next ? next.from : 0 }),
  };
}

function notStored(id: string, why: "dropped" | undefined): ToolFailure {
  if (why === undefined) {
    const kept = `which are kept for ${mostUnusedDays} days after its last use`;
    const hint = `Ids are those of this session's results, ${kept}. Call the tool again.`;
    return { code: "unknown_result", message: `there is no stored result ${id}`, hint };
  }
  const { steps, characters } = storedLimits;
  const kept = `A session keeps its results for ${steps} steps, large ones up to ${characters / 1e6} MB together.`;
  return {
    code: "dropped_result",
    message: `the result ${id} is no longer stored`,
    hint: `${kept} Call the tool again.`,
  };
}

function plainFields(fields: ToolResult["fields"]): ToolResult["fields"] {
  const plain = (value: unknown): unknown => (typeof value === "string" ? value : plainItem(value).item);
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, plain(value)]));
}

function warningsOf({ warnings = [] }: ToolResult): readonly string[] {
  return typeof warnings === "function" ? warnings() : warnings;
}
