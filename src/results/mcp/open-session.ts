import { hostname } from "node:os";
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readOriginal } from "../../conversation/intake/index.ts";
import { ContextError } from "../../core/errors.ts";
import type { Store } from "../../core/store/index.ts";
import { isText, isWhole, namedKey, objectOf, readJson, shorten } from "../../core/text/index.ts";
import { type Environment, isAlive, ownIdentity, type ProcessIdentity } from "../../host/index.ts";
import { createSession, type Session, type SessionOptions } from "../session/index.ts";
import { completeBudget } from "./client-limits.ts";
import type { ServerStore } from "./server-store.ts";

interface McpSessionOptions
  extends Required<Pick<SessionOptions, "counter" | "budget" | "pageLimit">>,
    Pick<SessionOptions, "tools" | "hints" | "format" | "nextPageName"> {
  /** Names what is served. Processes that serve the same have the same id, so that ids and tokens of results stay valid
   *  after a restart. If the session has neither a name nor a conversation, each process has its own account, because
   *  each serves another window. A second process at the same time uses the account `ID.2`. */
  readonly id: string;
  /** Whether a person named the session. Then all its processes have one account, which always continues. */
  readonly isNamed: boolean;
  /** The conversation, if the client names it. All servers of the conversation share one account. */
  readonly conversation?: Conversation | undefined;
  /** The conversation, if one process serves several. Each conversation has its own account, also after a restart. */
  readonly client?: string | undefined;
  readonly kept: ServerStore;
}

export interface McpSession {
  readonly session: Session;
  /** Returns what the client has to know about stored results, once. */
  takeNotice(): string | undefined;
  /** Returns a result of this session that an intake shortened, as the tool returned it. */
  original(id: string): Promise<string | undefined>;
  /** Ends the session gracefully: the next process starts a new account. */
  close(): Promise<void>;
}

/** Opens the session of a server or of one of its clients. Results of earlier processes can be recalled, and their
 *  tokens stay valid. Servers of one named session, or of one conversation, share one account. Every other account
 *  continues only if the same client had it, or if the previous process was killed a short time ago. */
export async function openMcpSession(options: McpSessionOptions): Promise<McpSession> {
  const { id, isNamed, client, conversation, kept } = options;
  const common = isNamed ? { id, isLasting: true } : conversation;
  let opened: Account | undefined;
  let unreadable: ContextError | undefined;
  if (common !== undefined && client === undefined) {
    try {
      opened = { ...(await openCommonAccount(options, common)), takeNotice: createNotices(kept, undefined) };
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      unreadable = error;
    }
  }
  opened ??= await openOwnAccount(options, unreadable);
  const names = [opened.session.id, opened.session.id.replace(/^claude-code-/, "")];
  return {
    ...opened,
    async original(id) {
      const found = await readOriginal(kept.store, id);
      return found !== undefined && names.includes(found.sessionId) ? found.text : undefined;
    },
  };
}

type Account = Omit<McpSession, "original">;

/** `unreadable` says why the first account cannot be used. */
async function openOwnAccount(options: McpSessionOptions, unreadable: ContextError | undefined): Promise<Account> {
  const { id: shared, isNamed, kept, client } = options;
  let damaged = unreadable;
  let number = damaged === undefined ? await lastNumber(kept.store, shared, client) : 2;
  for (let tries = 0; ; tries += 1) {
    const account = await claimAccount(kept.store, shared, { number, client });
    try {
      const session = await createAccount(options, account.id);
      const isLasting = isNamed && account.id === shared;
      if (!isLasting && !isSameConversation(account.before, client, session)) await session.reset();
      return { session, close: account.close, takeNotice: createNotices(kept, damaged) };
    } catch (error) {
      // Frees it, so that the next try finds it unchanged.
      await account.close().catch(() => {});
      // An account that cannot be read must not stop the server, so the next one is taken.
      const maxTries = 20;
      if (!isUnreadable(error) || tries === maxTries) throw error;
      damaged = error;
      number = account.number + 1;
    }
  }
}

function isUnreadable(error: unknown): error is ContextError {
  return error instanceof ContextError && ["store_corrupt", "store_newer"].includes(error.code);
}

/** Returns each notice once, even if the store breaks in the middle of a session. */
function createNotices(kept: ServerStore, damaged: ContextError | undefined): () => string | undefined {
  let [isDamageReported, isProblemReported] = [damaged === undefined, false];
  return () => {
    const notices: string[] = [];
    if (!isDamageReported) notices.push([damaged!.message, damaged!.hint].filter(Boolean).join(". "));
    isDamageReported = true;
    const problem = isProblemReported ? undefined : kept.problem();
    if (problem !== undefined) notices.push(problem);
    isProblemReported ||= problem !== undefined;
    // The notice is added to a page that is as large as the client shows. Each client limit leaves this much room.
    return notices.length === 0 ? undefined : shorten(notices.join(" "), 400);
  };
}

/** A conversation as its client names it. */
export interface Conversation {
  /** The id of its account. */
  readonly id: string;
  /** Whether the name stays the same when a person resumes the conversation. Otherwise the account starts again once all
   *  its servers have ended. */
  readonly isLasting: boolean;
}

/** Returns the conversation that a client names: in the environment of its servers, or in `_meta` of a call. Seen in runs
 *  of these versions, 2026-11: Claude Code 2.1 sets its session id, which `--resume ID` keeps and `--continue` does not.
 *  opencode 1.18 sets the number of its process. Codex 0.166 sends the id of the window with each call, and keeps it when
 *  a person resumes the conversation. gemini-cli 0.61 says nothing. */
export function findConversation(
  source: { readonly env: Environment } | { readonly meta: unknown },
): Conversation | undefined {
  if ("meta" in source) {
    const { windowId, threadId } = Object(source.meta) as Readonly<Record<string, unknown>>;
    const id = [windowId, threadId].find((each) => typeof each === "string" && plainId.test(each));
    return id === undefined ? undefined : { id: `codex-${id}`, isLasting: true };
  }
  const { CLAUDE_CODE_SESSION_ID: claude = "", OPENCODE_PID: opencode = "" } = source.env;
  if (plainId.test(claude)) return { id: `claude-code-${claude}`, isLasting: true };
  return plainId.test(opencode) ? { id: `opencode-${opencode}`, isLasting: false } : undefined;
}

const plainId = /^[\w.@:-]{1,100}$/;

/** Opens the one account of several processes. */
async function openCommonAccount(
  options: McpSessionOptions,
  { id, isLasting }: Conversation,
): Promise<Pick<Account, "session" | "close">> {
  const { store } = options.kept;
  const key = `${id}${processMark}${process.pid}@${hostname()}`;
  await store.put(marks, key, renderOwnMark("running"));
  const close = async (): Promise<void> => void (await store.delete(marks, key));
  try {
    // Each server of a common account has its own part of the system tier, so that a restarted one is counted once.
    const systemPart = namedKey("server", JSON.stringify([process.cwd(), ...process.argv.slice(2)]));
    const session = await createAccount(options, id, systemPart);
    let others = 0;
    for (const { key: other, value } of await store.list(marks, { prefix: `${id}${processMark}` })) {
      const mark = readMark(value);
      if (mark === undefined || !isRunning(mark)) await store.delete(marks, other);
      else if (other !== key) others += 1;
    }
    if (!isLasting && others === 0) await session.reset();
    return { session, close };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}

const processMark = "#";

function createAccount(options: McpSessionOptions, id: string, systemPart?: string): Promise<Session> {
  const { id: shared, isNamed, conversation, client, kept, budget, ...settings } = options;
  return createSession({
    ...settings,
    budget: completeBudget(budget),
    sessionId: id,
    store: kept.store,
    now: Date.now,
    continuations: "unique",
    patience,
    groupId: id === shared ? undefined : shared,
    systemPart,
  });
}

/** Limits how long a result that is larger than its fair share waits for parallel calls. */
export async function patience(): Promise<void> {
  // Clients with parallel calls wait for all answers anyway. But one call may take minutes.
  await sleep(1_000, undefined, { ref: false });
}

const marks = "mcp";

/** The process that had the account last. */
interface Mark extends ProcessIdentity {
  readonly state: "running" | "ended";
  /** The machine of the process, and when it started there. A store can serve several machines. */
  readonly host?: string | undefined;
  readonly time?: number | undefined;
  readonly client?: string | undefined;
}

function accountId(shared: string, number: number): string {
  return number === 1 ? shared : `${shared}.${number}`;
}

/** Returns the account that the client had, if nobody had it since, or the first one. */
async function lastNumber(store: Store, shared: string, client: string | undefined): Promise<number> {
  for (let number = 1; client !== undefined; number += 1) {
    const found = await store.get(marks, accountId(shared, number));
    if (found === undefined) break;
    if (readMark(found.value)?.client === client) return number;
  }
  return 1;
}

/** Claims the first account, from that number on, that no living process has. */
async function claimAccount(
  store: Store,
  shared: string,
  { number: first, client }: { readonly number: number; readonly client: string | undefined },
) {
  const [running, ended] = [renderOwnMark("running", client), renderOwnMark("ended", client)];
  // A later process has written its own mark.
  const end = (text: string | undefined): string => (text === running || text === undefined ? ended : text);
  for (let number = first; ; number += 1) {
    const id = accountId(shared, number);
    let before: Mark | undefined;
    let isFree = false;
    await store.update(marks, id, (text) => {
      before = readMark(text);
      isFree = before?.state !== "running" || !isRunning(before);
      return isFree ? running : text!;
    });
    if (isFree) return { id, number, before, close: async () => void (await store.update(marks, id, end)) };
  }
}

function renderOwnMark(state: Mark["state"], client?: string): string {
  const mark: Mark = { ...ownIdentity(), state, client, host: hostname(), time: Date.now() };
  return JSON.stringify(mark);
}

/** Whether the process that left a mark still runs. */
export function isRunning(mark: Omit<Mark, "state">): boolean {
  const { host = hostname(), time = 0 } = mark;
  // Processes of another machine cannot be seen from here. They count as running for a day.
  return host === hostname() ? isAlive(mark) : Date.now() - time < 86_400_000;
}

/** Returns undefined for a mark that cannot be read. */
function readMark(text: string | undefined): Mark | undefined {
  const isState = (value: unknown): value is Mark["state"] => value === "running" || value === "ended";
  const others = { started: isText, client: isText, host: isText, time: isWhole };
  const mark = readJson(text, objectOf({ pid: isWhole, state: isState }, others));
  // 0 is our own process group.
  return mark?.pid === 0 ? undefined : mark;
}

/** Returns the sessions that servers have open, with the server's process. */
export async function runningSessions(store: Store): Promise<Map<string, number>> {
  const found = (await store.list(marks)).flatMap(({ key, value }) => {
    const mark = readMark(value);
    const [id = key] = key.split(processMark);
    return mark?.state === "running" && isRunning(mark) ? [[id, mark.pid] as const] : [];
  });
  return new Map(found);
}

/** Deletes the marks of the session's processes. */
export async function forgetServer(store: Store, sessionId: string): Promise<void> {
  await store.delete(marks, sessionId);
  const others = await store.list(marks, { prefix: `${sessionId}${processMark}` });
  for (const { key } of others) await store.delete(marks, key);
}

/** Whether the same client had the account before, or the process before was killed a short time ago. */
function isSameConversation(before: Mark | undefined, client: string | undefined, session: Session): boolean {
  if (before?.client !== client) return false;
  if (client !== undefined) return true;
  const view = session.workLog("recent");
  const lastCall = "recent" in view ? view.recent[0]?.time : undefined;
  if (before?.state !== "running" || isRunning(before) || lastCall === undefined) return false;
  // A client that lost its server restarts it within this time.
  return Date.now() - new Date(lastCall).getTime() < 3_600_000;
}

/** The sessions of a process, one for each client. */
export interface ClientSessions {
  /** Answers in the client's session. Clients without an identity (undefined) share one. */
  use<Result>(client: string | undefined, answer: (session: McpSession) => Promise<Result>): Promise<Result>;
  /** Ends a client's session. If a call is running, the session stays until its place is needed. */
  close(client: string): Promise<void>;
  closeAll(): Promise<void>;
}

/** Opens a session with a client's first call. Most clients never announce their end, so above `maxOpen` it closes the
 *  least recently used ones. Never closes a session with a running call, nor the shared one, whose clients could not
 *  find it again. */
export function createClientSessions(
  open: (client: string | undefined) => Promise<McpSession>,
  maxOpen: number = 100,
): ClientSessions {
  /** In the order of their last use, with the number of running calls. */
  const opened = new Map<string | undefined, { readonly session: Promise<McpSession>; calls: number }>();
  // The opening session waits for this, because an account is free only after it is closed.
  let closing: Promise<void> = Promise.resolve();
  const close = async (client: string | undefined): Promise<void> => {
    const session = opened.get(client)?.session;
    opened.delete(client);
    closing = closing.then(async () => (await session)?.close()).catch(() => {});
    await closing;
  };
  const begin = (client: string | undefined) => {
    for (const [other, { calls }] of opened) {
      if (opened.size < maxOpen) break;
      if (other !== undefined && calls === 0) void close(other);
    }
    const session = closing.then(() => open(client));
    session.catch(() => opened.get(client)?.session === session && opened.delete(client));
    return { session, calls: 0 };
  };
  return {
    async use(client, answer) {
      const used = opened.get(client) ?? begin(client);
      opened.delete(client);
      opened.set(client, used);
      used.calls += 1;
      try {
        return await answer(await used.session);
      } finally {
        used.calls -= 1;
      }
    },
    async close(client) {
      if (opened.get(client)?.calls === 0) await close(client);
    },
    async closeAll() {
      for (const client of opened.keys()) void close(client);
      await closing;
    },
  };
}

/** Returns the id of the session that servers of one thing share. It is the same in every process, so that tokens stay
 *  valid after a restart, and it contains a name that people know. `parts` are everything that identifies the thing. */
export function createSessionId(kind: "mcp" | "wrap", name: string, parts: readonly string[]): string {
  return `${kind}-${namedKey(basename(name), JSON.stringify(parts))}`;
}
