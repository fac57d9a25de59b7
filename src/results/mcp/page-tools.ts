/** The tools that MCP adds: for the next page, for an earlier result, and for the budget. Their arguments are checked
 *  like those of other tools, and an error counts like any other answer. */

import type { Tool } from "@modelcontextprotocol/server";
import { ContextError } from "../../core/errors.ts";
import { isOriginalId, shorten, splitLines } from "../../core/text/index.ts";
import {
  budgetParameter,
  createInputSchema,
  type Delivered,
  type ErrorEnvelope,
  isFailure,
  type PageFormat,
  readArguments,
  renderFailure,
  type Session,
  type ToolArguments,
  type ToolDefinition,
  type ToolFailure,
  type ToolParameters,
  type ToolResult,
} from "../session/index.ts";
import { createLineMatcher } from "../tools/index.ts";
import type { CommandPlace } from "./run-command.ts";

/** A tool that MCP adds to a session. */
export interface PageTool<Result extends Answer = Answer> extends ToolDefinition {
  /** What the tool may do, unless it only reads the project. */
  readonly annotations?: Tool["annotations"];
  run(
    session: Session,
    args: ToolArguments,
    options?: {
      readonly signal?: AbortSignal;
      /** Of the session. @default "json" */
      readonly format?: PageFormat;
      /** Returns a result that an intake shortened, as the tool returned it. */
      readonly original?: ((id: string) => Promise<string | undefined>) | undefined;
      /** Where `run_command` runs. */
      readonly commands?: CommandPlace | undefined;
    },
  ): Promise<Result>;
}

const nextPageParameters = {
  token: {
    type: "string",
    description: "As the previous page gave it.",
    required: true,
  },
  budget: budgetParameter,
} as const satisfies ToolParameters;

export const nextPageTool: PageTool<Delivered> = {
  name: "next_page",
  description: "Get the next page of a result by its token, without repeating the call.",
  inputSchema: createInputSchema(nextPageParameters),
  run(session, args, { signal } = {}) {
    const read = readArguments(nextPageParameters, args);
    if ("failure" in read) return session.refuse(read.failure, { tool: nextPageTool.name, args });
    const { token, budget: maxTokens } = read.values;
    return session.nextPage(token, { maxTokens, signal });
  },
};

const recallParameters = {
  id: {
    type: "string",
    description: "From a result.",
    required: true,
  },
  pattern: { type: "string", description: "Regular expression." },
  lines: { type: "string", description: "Such as 10-40." },
  offset: { type: "integer", minimum: 0, description: "Items to skip." },
  budget: budgetParameter,
} as const satisfies ToolParameters;

export const recallPageTool: PageTool<Delivered> = {
  name: "recall",
  description: "Get an earlier result again, or lines of it.",
  inputSchema: createInputSchema(recallParameters),
  async run(session, args, { original } = {}) {
    const read = readArguments(recallParameters, args);
    const call = { tool: recallPageTool.name, args };
    if ("failure" in read) return session.refuse(read.failure, call);
    const { id, offset = 0, budget: maxTokens, pattern, lines } = read.values;
    const text = isOriginalId(id) ? await original?.(id) : undefined;
    if (pattern === undefined && lines === undefined) {
      if (text === undefined) return session.recall(id, { offset: read.values.offset, maxTokens });
      const items = text.split("\n");
      const result = { fields: {}, itemsName: "lines", items: items.slice(offset), offset, total: items.length };
      return session.deliver(result, { ...call, maxTokens });
    }
    const found = await findInResult(session, { id, text, pattern, lines, offset });
    return isFailure(found) ? session.refuse(found, call) : session.deliver(found, { ...call, maxTokens });
  },
};

/** Searches in the text of a stored result, and returns lines with their numbers as `rg -n` prints them. */
async function findInResult(
  session: Session,
  query: {
    readonly id: string;
    /** The text, if the session does not have it. */
    readonly text: string | undefined;
    readonly pattern: string | undefined;
    readonly lines: string | undefined;
    readonly offset: number;
  },
): Promise<ToolResult | ToolFailure> {
  const { id, text: known, pattern, lines, offset } = query;
  const range = readRange(lines);
  if (isFailure(range)) return range;
  // As long as for one file of a search. Nothing else runs during that time.
  const options = { isRegex: true, caseSensitive: true, timeoutMs: 500 };
  const matcher = pattern === undefined ? undefined : createLineMatcher(pattern, options);
  if (matcher !== undefined && isFailure(matcher)) return matcher;
  // A line that is too long counts as several.
  const text = known === undefined ? await session.readLines(id) : splitLines(known).map((line) => line.text);
  if (isFailure(text)) return text;
  const found: string[] = [];
  for await (const { first, batch } of readBatches(text, range)) {
    const matched = matcher?.find([batch])?.[0];
    if (matcher !== undefined && matched === undefined) {
      const hint = "Avoid repetitions inside of repetitions, such as (a+)+, or name fewer lines.";
      return { code: "timed_out", message: "The pattern takes too long.", hint };
    }
    if (matched === undefined) found.push(...batch.map((line, index) => `${first + index}:${line}`));
    else found.push(...matched.map(([index, at]) => `${first + index}:${cutAround(batch[index]!, at)}`));
  }
  const itemsName = pattern === undefined ? "lines" : "matches";
  return { fields: {}, itemsName, items: found.slice(offset), offset, total: found.length };
}

interface LineRange {
  /** Counted from 1, both included. */
  readonly first: number;
  readonly last: number;
}

function readRange(lines: string | undefined): LineRange | ToolFailure {
  if (lines === undefined) return { first: 1, last: Number.POSITIVE_INFINITY };
  const [, first, dash, last] = /^\s*(\d{1,9})\s*(?:(-)\s*(\d{1,9})?)?\s*$/.exec(lines) ?? [];
  const range = { first: Number(first), last: Number(last ?? (dash === undefined ? first : Number.POSITIVE_INFINITY)) };
  if (range.first >= 1 && range.last >= range.first) return range;
  const message = `lines is ${JSON.stringify(shorten(lines, 60))}, but must be a number or a range.`;
  return { code: "invalid_argument", message, hint: "Use 25, 10-40 or 100-." };
}

/** Yields the lines of the range in batches, with the number of the first one. */
async function* readBatches(
  lines: AsyncIterable<string> | readonly string[],
  { first, last }: LineRange,
): AsyncGenerator<{ readonly first: number; readonly batch: readonly string[] }> {
  let [number, characters, batch] = [0, 0, [] as string[]];
  for await (const line of lines) {
    number += 1;
    if (number < first) continue;
    if (number > last) break;
    batch.push(line);
    characters += line.length;
    if (batch.length < 2_000 && characters < 1_000_000) continue;
    yield { first: number - batch.length + 1, batch };
    [characters, batch] = [0, []];
  }
  if (batch.length > 0) yield { first: Math.min(number, last) - batch.length + 1, batch };
}

/** Lines of JSON can have megabytes. */
const maxLineCharacters = 400;

/** Returns the part of a long line that has the match. */
function cutAround(line: string, at: number): string {
  if (line.length <= maxLineCharacters) return line;
  const start = Math.max(0, Math.min(at - maxLineCharacters / 4, line.length - maxLineCharacters));
  const end = Math.min(line.length, start + maxLineCharacters);
  return `${start > 0 ? "…" : ""}${line.slice(start, end)}${end < line.length ? "…" : ""}`;
}

const budgetStatusParameters = {
  reset: {
    type: "boolean",
    default: false,
    description: "Start a new account, as for a new conversation.",
  },
} as const satisfies ToolParameters;

export const budgetStatusTool: PageTool = {
  name: "budget_status",
  description: "Show the token budget that is left, and ids of the last results.",
  // It can start a new account.
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  inputSchema: createInputSchema(budgetStatusParameters),
  async run(session, args, { format = "json" } = {}) {
    const read = readArguments(budgetStatusParameters, args);
    if ("failure" in read) return session.refuse(read.failure, { tool: budgetStatusTool.name, args });
    await (read.values.reset ? session.reset() : session.refresh());
    const { calls, summary, warning } = session.status();
    const log = session.workLog("recent");
    const data = { session: session.id, summary, ...session.forModel(), calls, ...log };
    const envelope = { status: "success", data } as const;
    if (format === "json") return { envelope, text: JSON.stringify(envelope) };
    const steps = "recent" in log ? log.recent.map(({ id, tool, result }) => `${id} ${tool}: ${result}`) : [];
    return { envelope, text: [summary, ...(warning === undefined ? [] : [warning]), ...steps].join("\n") };
  },
};

/** Claude Code lists MCP tools only after a search, which costs a turn, unless a tool has this in its `_meta` (seen with
 *  2.1.326). The tools for pages are needed right after a result. */
export const alwaysLoaded = { "anthropic/alwaysLoad": true } as const;

/** The result of a tool call: the envelope, and what the model reads. */
export interface Answer {
  readonly envelope: { readonly status: "success" | "error" };
  readonly text: string;
}

/** A problem with the store becomes an answer. Only a bug throws. */
export async function settle(call: () => Promise<Answer>, format: PageFormat = "json"): Promise<Answer> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof ContextError)) throw error;
    const { code, message, hint } = error;
    const failure: ToolFailure = {
      code,
      message: shorten(message, 600),
      ...(hint === undefined ? {} : { hint: shorten(hint, 300) }),
    };
    const envelope: ErrorEnvelope = { status: "error", error: failure };
    return { envelope, text: format === "text" ? renderFailure(failure) : JSON.stringify(envelope) };
  }
}

/** As JSON, the same in both forms: clients show the model only one of them, and each must say how to continue. As
 *  text, only the text: a client that prefers structured content would show more than was counted. */
export function toCallResult(
  { envelope, text }: Answer,
  format: PageFormat = "json",
): { content: { type: "text"; text: string }[]; structuredContent?: Record<string, unknown>; isError?: true } {
  return {
    content: [{ type: "text", text }],
    ...(format === "json" ? { structuredContent: { ...envelope } } : {}),
    ...(envelope.status === "error" ? { isError: true } : {}),
  };
}
