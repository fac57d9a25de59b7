/** Tools and readers that the tests of sessions share. */
import { createMemoryStore, type Store } from "../../core/store/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import type { BudgetedTool, ToolArguments, ToolFailure, ToolResult } from "./budgeted-tool.ts";
import type { Cut, Delivered, PageData } from "./envelope.ts";
import { genericCompressor } from "./log-entry.ts";
import type { SessionOptions } from "./session.ts";
import { createSession, type Session } from "./session.ts";
import { createNumberedIds } from "./stored-results.ts";

export const bytesCounter: Counter = { name: "bytes", count: (text) => Buffer.byteLength(text) };
export const quarterCounter: Counter = {
  name: "bytes/4",
  count: (text) => Math.ceil(Buffer.byteLength(text) / 4),
};

/** Returns these items from `offset` on, one by one. */
export function listTool(items: readonly unknown[], result: Partial<ToolResult> = {}): BudgetedTool {
  return answeringTool("list", async ({ offset = 0 }) => ({
    fields: {},
    itemsName: "files",
    offset: Number(offset),
    items: items.slice(Number(offset)),
    ...result,
  }));
}

export function answeringTool(
  name: string,
  run: (args: ToolArguments) => Promise<ToolResult | ToolFailure>,
  rest: Partial<BudgetedTool> = {},
): BudgetedTool {
  return {
    name,
    description: `Runs ${name}.`,
    inputSchema: { type: "object", properties: { offset: { type: "integer" }, budget: { type: "integer" } } },
    itemTokens: 100,
    itemUnit: "files with metadata",
    compress: genericCompressor,
    run,
    ...rest,
  };
}

/** Each reading of the clock advances it by a second. */
export function openSession(options: Partial<SessionOptions> = {}): Promise<Session> {
  let seconds = 0;
  const now = (): number => Date.UTC(2026, 10, 15, 10, 0, seconds++);
  const store: Store = options.store ?? createMemoryStore();
  return createSession({ counter: quarterCounter, now, ...options, store });
}

/** Returns the id of a session's result by its number. `openSession` names sessions after its clock. */
export function resultId(number: number, sessionId = "s-20261115T100000000Z"): string {
  return createNumberedIds(sessionId).create(number);
}

/** Returns the data as a client reads it. */
export function dataOf({ text }: Delivered): PageData {
  const envelope = JSON.parse(text) as Delivered["envelope"];
  if (envelope.status === "error") throw new Error(`${envelope.error.code}: ${envelope.error.message}`);
  return envelope.data;
}

export interface Joined {
  readonly items: readonly unknown[];
  readonly pages: readonly Delivered[];
  /** Present if the fields were left out and came at the end. */
  readonly fields?: unknown;
}

/** Follows the continuations of a result to its end, as a model would, and joins cut items. */
export async function readOn(session: Session, first: Delivered, args: ToolArguments): Promise<Joined> {
  const pages: Delivered[] = [];
  const joining = createJoining();
  for (let page: Delivered | undefined = first; page !== undefined; page = await following(session, page, args)) {
    pages.push(page);
    if (pages.length > 5_000) throw new Error("the continuations have no end");
    joining.add(dataOf(page));
  }
  return { pages, ...joining.joined() };
}

function createJoining(): { add(data: PageData): void; joined(): Omit<Joined, "pages"> } {
  const items: unknown[] = [];
  let parts: { first: unknown; texts: string[] } | undefined;
  let fieldsText = "";
  const addPart = (found: readonly unknown[], cut: Cut): void => {
    const [text] = cut.from === 0 ? [textIn(found[0], cut)] : (found as string[]);
    parts = cut.from === 0 ? { first: found[0], texts: [] } : parts;
    parts!.texts.push(text!);
    if (cut.to === cut.length) items.push(whole(parts!.first, cut, parts!.texts.join("")));
  };
  return {
    add(data) {
      const found = itemsOf(data);
      if (data.cut === undefined) items.push(...found);
      else if (data.cut.item === undefined) fieldsText += found[0];
      else addPart(found, data.cut);
    },
    joined: () => ({ items, ...(fieldsText === "" ? {} : { fields: JSON.parse(fieldsText) }) }),
  };
}

async function following(
  session: Session,
  page: Delivered,
  { tool = "list", ...args }: ToolArguments,
): Promise<Delivered | undefined> {
  const token = dataOf(page).continuation_token;
  if (token === undefined) return undefined;
  const [, offset] = /^offset:(\d+)$/.exec(token) ?? [];
  return offset === undefined
    ? session.nextPage(token, { maxTokens: args.budget as number | undefined })
    : session.call(String(tool), { ...args, offset: Number(offset) });
}

export function itemsOf(data: PageData): readonly unknown[] {
  return (data.files ?? data.json) as readonly unknown[];
}

function textIn(item: unknown, { at }: Cut): string {
  return stepsOf(at).reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], item) as string;
}

function whole(item: unknown, { at }: Cut, text: string): unknown {
  if (at === undefined) return JSON.parse(text);
  const put = (value: unknown, [key, ...rest]: string[]): unknown => {
    if (key === undefined) return text;
    const child = put((value as Record<string, unknown>)[key], rest);
    return Array.isArray(value) ? value.with(Number(key), child) : { ...(value as object), [key]: child };
  };
  return put(item, stepsOf(at));
}

function stepsOf(pointer = ""): string[] {
  const steps = pointer.split("/").slice(1);
  return steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}
