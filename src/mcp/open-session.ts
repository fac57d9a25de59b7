import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerOptions } from "../budget/index.ts";
import { ContextError } from "../errors.ts";
import {
  type BudgetedTool,
  createSession,
  type HintMode,
  type PageLimit,
  type Session,
} from "../session/index.ts";
import type { Store } from "../store/index.ts";
import { isText, isWhole, objectOf, readJson, shorten } from "../text/index.ts";
import type { Counter } from "../tokens/index.ts";
import { isAlive, ownIdentity, type ProcessIdentity } from "../workspace/index.ts";
import type { ServerStore } from "./server-store.ts";

export interface McpSessionOptions {
  /** The same for every process that serves the same thing, so that ids and tokens of results hold over restarts. Processes that run at
   *  the same time have an account each, the second one as `ID.2`: each is a conversation with a window of its own. */
  readonly id: string;
  /** The account goes on whatever happened before, as if no process had ended. */
  readonly goesOn: boolean;
  /** Where a process serves several conversations: which one it is. Each has an account, and goes on in it over restarts. */
  readonly client?: string | undefined;
  readonly kept: ServerStore;
  readonly counter: Counter;
  readonly budget: LedgerOptions;
  readonly tools?: readonly BudgetedTool[] | undefined;
  /** `note` unless told. */
  readonly hints?: HintMode | undefined;
  readonly pageLimit: () => PageLimit;
  readonly nextPageName?: (() => string) | undefined;
}

export interface McpSession {
  readonly session: Session;
  /** What the client must know about what is kept. Given once. */
  takeNotice(): string | undefined;
  /** This process ends in good order: the next one begins a new account. */
  close(): Promise<void>;
}

/** Opens the session of a server, or of one of its clients. Results of earlier processes stay recallable, and their tokens hold. The
 *  account goes on only where the same client had it, or the process before was killed a short time ago: else another conversation
 *  begins, to which it would tell nothing. */
export async function openMcpSession(options: McpSessionOptions): Promise<McpSession> {
  const { id: shared, kept, client } = options;
  let damaged: ContextError | undefined;
  let number = await lastNumber(kept.store, shared, client);
  for (let tries = 0; ; tries += 1) {
    const account = await claimAccount(kept.store, shared, { number, client });
    try {
      const session = await openAccount(options, account);
      return { session, close: account.close, takeNotice: createNotices(kept, damaged) };
    } catch (error) {
      // Nobody has it: the next try takes it as it was.
      await account.close().catch(() => {});
      // An account that cannot be read costs itself, not the server: the next one is taken.
      if (!isUnreadable(error) || tries === mostUnreadable) throw error;
      damaged = error;
      number = account.number + 1;
    }
  }
}

const mostUnreadable = 20;

function isUnreadable(error: unknown): error is ContextError {
  return error instanceof ContextError && ["store_corrupt", "store_newer"].includes(error.code);
}

/** It comes beside a page that is as large as the client shows it; each limit of a client leaves so much room. */
const mostNoticeCharacters = 400;

/** Each is given once, also where the store breaks in the middle of a session. */
function createNotices(kept: ServerStore, damaged: ContextError | undefined): () => string | undefined {
  let [toldDamage, toldProblem] = [damaged === undefined, false];
  return () => {
    const notices: string[] = [];
    if (!toldDamage) notices.push([damaged!.message, damaged!.hint].filter(Boolean).join(". "));
    toldDamage = true;
    const problem = toldProblem ? undefined : kept.problem();
    if (problem !== undefined) notices.push(problem);
    toldProblem ||= problem !== undefined;
    return notices.length === 0 ? undefined : shorten(notices.join(" "), mostNoticeCharacters);
  };
}

async function openAccount(
  { id: shared, goesOn, client, kept, ...rest }: McpSessionOptions,
  { id, before }: Account,
): Promise<Session> {
  const session = await createSession({
    ...{ id, store: kept.store, now: () => new Date(), continuations: "unique", patience },
    resultsOf: id === shared ? undefined : shared,
    ...rest,
  });
  const isNamed = goesOn && (client === undefined || id === shared);
  if (!isNamed && !isSameConversation(before, client, lastCall(session))) await session.reset();
  return session;
}

/** Clients that make calls side by side wait for all of the answers anyway. One call may take minutes, though. */
const mostPatienceMs = 1_000;

/** How long a result that is larger than its fair share waits for those of the calls beside it. */
export async function patience(): Promise<void> {
  await sleep(mostPatienceMs, undefined, { ref: false });
}

const marks = "mcp";

/** Who had the account last. */
interface Mark extends ProcessIdentity {
  readonly state: "running" | "ended";
  readonly client?: string | undefined;
}

function accountId(shared: string, number: number): string {
  return number === 1 ? shared : `${shared}.${number}`;
}

/** The account that the client had, where nobody had it since; else the first one. */
async function lastNumber(store: Store, shared: string, client: string | undefined): Promise<number> {
  for (let number = 1; client !== undefined; number += 1) {
    const found = await store.get(marks, accountId(shared, number));
    if (found === undefined) break;
    if (readMark(found.value)?.client === client) return number;
  }
  return 1;
}

interface Account {
  readonly id: string;
  readonly number: number;
  readonly before: Mark | undefined;
  close(): Promise<void>;
}

/** The first account, from that number on, which no living process has. */
async function claimAccount(
  store: Store,
  shared: string,
  { number: first, client }: { readonly number: number; readonly client: string | undefined },
): Promise<Account> {
  const own = ownIdentity();
  const running = JSON.stringify({ ...own, state: "running", client } satisfies Mark);
  const ended = JSON.stringify({ ...own, state: "ended", client } satisfies Mark);
  // A process that came later has put its own mark there.
  const end = (text: string | undefined): string => (text === running || text === undefined ? ended : text);
  for (let number = first; ; number += 1) {
    const id = accountId(shared, number);
    let before: Mark | undefined;
    let isFree = false;
    await store.update(marks, id, (text) => {
      before = readMark(text);
      isFree = before?.state !== "running" || !isAlive(before);
      return isFree ? running : text!;
    });
    if (isFree) return { id, number, before, close: async () => void (await store.update(marks, id, end)) };
  }
}

const isState = (value: unknown): value is Mark["state"] => value === "running" || value === "ended";
const isMark = objectOf({ pid: isWhole, state: isState }, { started: isText, client: isText });

/** Undefined for one that cannot be read. */
function readMark(text: string | undefined): Mark | undefined {
  const mark = readJson(text, isMark);
  // 0 stands for our own process group.
  return mark?.pid === 0 ? undefined : mark;
}

/** The sessions that a server of this machine has open, with the server's process. */
export async function runningSessions(store: Store): Promise<Map<string, number>> {
  const found = (await store.list(marks)).flatMap(({ key, value }) => {
    const mark = readMark(value);
    return mark?.state === "running" && isAlive(mark) ? [[key, mark.pid] as const] : [];
  });
  return new Map(found);
}

/** Deletes the mark that tells who had the session last. */
export async function forgetServer(store: Store, sessionId: string): Promise<void> {
  await store.delete(marks, sessionId);
}

/** Within this time a client that lost its server starts it again. */
const mostPauseMs = 3_600_000;

function isSameConversation(
  before: Mark | undefined,
  client: string | undefined,
  last: Date | undefined,
): boolean {
  if (before?.client !== client) return false;
  return client !== undefined || wasKilled(before, last);
}

function wasKilled(before: Mark | undefined, last: Date | undefined): boolean {
  if (before?.state !== "running" || last === undefined) return false;
  return !isAlive(before) && Date.now() - last.getTime() < mostPauseMs;
}

function lastCall(session: Session): Date | undefined {
  const view = session.workLog("recent");
  const time = "recent" in view ? view.recent[0]?.time : undefined;
  return time === undefined ? undefined : new Date(time);
}
