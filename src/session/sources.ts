/** Where pages come from: a tool that runs now, a result that is there already, a stored one. */
import type { ToolArguments, ToolFailure, ToolResult } from "./budgeted-tool.ts";
import { offsetToken, type Position, parseToken, storedToken } from "./pages/continuation.ts";
import type { Page, PageSource } from "./pages/page-source.ts";
import { plainItem, readItems } from "./pages/read-items.ts";
import type { SeenVersions } from "./state/seen-versions.ts";
import type { ResultToStore, StoredReference, StoredResult, StoredResults } from "./state/stored-results.ts";

export interface Opened {
  readonly source: PageSource;
  /** Whose result it is, and how it was asked for. */
  readonly tool: string;
  readonly args: ToolArguments;
  /** What is to be stored once the page is known. */
  finish(page: Page): ResultToStore | StoredReference;
}

export interface Origin {
  /** Of the delivery. */
  readonly id: string;
  readonly tool: string;
  readonly args: ToolArguments;
}

/** Items come from the tool, again and again by their offset; stored is the page, so that it can be recalled and a cut item read on. */
export function openToolResult(
  result: ToolResult,
  { id, tool, args }: Origin,
  versions: SeenVersions,
): Opened {
  const seen = { tool, args, offset: result.offset, version: result.version };
  const fields = plainFields(result.fields);
  const source: PageSource = {
    ...result,
    fields,
    warnings: () => [...(versions.isChanged(seen) ? [changedWarning] : []), ...warningsOf(result)],
    tokenAt: (position) =>
      position.at === "items" ? offsetToken(position.offset) : storedToken(id, position),
  };
  const finish = ({ items, data, nextToken }: Page): ResultToStore => {
    if (nextToken !== undefined) versions.remember(seen);
    const { itemsName, offset } = result;
    return { tool, args, fields, itemsName, offset, items, total: data.total, nextToken };
  };
  return { source, tool, args, finish };
}

const changedWarning =
  "The result changed since the page before this one: items may be missing or come twice. Start again without offset.";

/** A result without a tool that gives it again: all of it is stored. */
export async function openGivenResult(result: ToolResult, { id, tool, args }: Origin): Promise<Opened> {
  const read = await readItems(result.items, { room: Number.POSITIVE_INFINITY, measure: () => 0 });
  const { items, failure } = read;
  if (failure !== undefined && items.length === 0) throw failure;
  const fields = plainFields(result.fields);
  const total = result.offset + items.length;
  const stopped = failure === undefined ? [] : [`Stopped after ${items.length} items: ${String(failure)}`];
  const source: PageSource = {
    ...result,
    fields,
    items,
    total,
    more: false,
    warnings: [...warningsOf(result), ...stopped],
    tokenAt: (position) => storedToken(id, position),
  };
  const { itemsName, offset } = result;
  return { source, tool, args, finish: () => ({ tool, args, fields, itemsName, offset, items, total }) };
}

/** A page of a stored result: where the token says, or where an earlier page of it began. */
export async function openStored(
  results: StoredResults,
  id: string,
  wanted: Position | undefined,
): Promise<Opened | ToolFailure> {
  const found = await results.load(id);
  if (found === undefined) return missing(id);
  if (!("of" in found)) return storedPage(found, id, wanted ?? { at: "items", offset: found.offset });
  const stored = await results.load(found.of);
  if (stored === undefined || "of" in stored) return missing(found.of);
  return storedPage(stored, found.of, wanted ?? found.position);
}

export function openToken(results: StoredResults, token: string): Promise<Opened | ToolFailure> {
  const continuation = parseToken(token);
  if (continuation?.id !== undefined) return openStored(results, continuation.id, continuation.position);
  const hint =
    continuation?.position.at === "items"
      ? `Call the tool itself again with offset=${continuation.position.offset}.`
      : "Pass the continuation_token of a result as it is, such as r42:offset:100.";
  const message = `${JSON.stringify(token)} is no token of a stored result`;
  return Promise.resolve({ code: "invalid_token", message, hint });
}

async function storedPage(stored: StoredResult, id: string, position: Position): Promise<Opened> {
  const { tool, args } = stored;
  const fieldsText = await stored.fieldsText();
  const finish = (): StoredReference => ({ of: id, position });
  if (position.at === "fields") return { source: fieldsSource(fieldsText, id, position), tool, args, finish };
  const offset = Math.max(position.offset, stored.offset);
  const source: PageSource = {
    fields: JSON.parse(fieldsText) as Record<string, unknown>,
    itemsName: stored.itemsName,
    items: stored.items(offset),
    offset,
    total: stored.total,
    more: false,
    nextToken: stored.nextToken,
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

function missing(id: string): ToolFailure {
  const hint = "Ids are those of this session's results. Call the tool again.";
  return { code: "unknown_result", message: `there is no stored result ${id}`, hint };
}

function plainFields(fields: ToolResult["fields"]): ToolResult["fields"] {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, plainItem(value).item]));
}

function warningsOf({ warnings = [] }: ToolResult): readonly string[] {
  return typeof warnings === "function" ? warnings() : warnings;
}
