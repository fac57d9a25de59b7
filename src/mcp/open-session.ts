import type { LedgerOptions } from "../budget/index.ts";
import {
  type BudgetedTool,
  createSession,
  type HintMode,
  type PageLimit,
  type Session,
} from "../session/index.ts";
import type { Store } from "../store/index.ts";
import type { Counter } from "../tokens/index.ts";

export interface McpSessionOptions {
  /** The same for every process that serves the same thing, so that ids and tokens of results hold over restarts. Processes that run at
   *  the same time have an account each, the second one as `ID.2`: each is a conversation with a window of its own. */
  readonly id: string;
  /** The account goes on whatever happened before, as if no process had ended. */
  readonly goesOn: boolean;
  readonly store: Store;
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
  /** This process ends in good order: the next one begins a new account. */
  close(): Promise<void>;
}

/** Opens the session of a server. Results of earlier processes stay recallable, and their tokens hold. The account goes on only
 *  where the process before was killed a short time ago: else another conversation begins, to which it would tell nothing. */
export async function openMcpSession(options: McpSessionOptions): Promise<McpSession> {
  const { id: shared, goesOn, store, ...rest } = options;
  const running = JSON.stringify({ pid: process.pid, state: "running" } satisfies Mark);
  const ended = JSON.stringify({ pid: process.pid, state: "ended" } satisfies Mark);
  const { id, before } = await claimAccount(store, shared, running);
  const session = await createSession({
    ...{ id, store, now: () => new Date(), tokens: "unique" },
    resultsOf: id === shared ? undefined : shared,
    ...rest,
  });
  if (!goesOn && !wasKilled(before, lastCall(session))) await session.reset();
  // A process that came later has put its own mark there.
  const end = (text: string | undefined): string => (text === running || text === undefined ? ended : text);
  return { session, close: async () => void (await store.update(marks, id, end)) };
}

const marks = "mcp";

/** Which process had the session last. */
interface Mark {
  readonly pid: number;
  readonly state: "running" | "ended";
}

/** The first account that no living process has. */
async function claimAccount(
  store: Store,
  shared: string,
  mark: string,
): Promise<{ readonly id: string; readonly before: Mark | undefined }> {
  for (let number = 1; ; number += 1) {
    const id = number === 1 ? shared : `${shared}.${number}`;
    let before: Mark | undefined;
    let isFree = false;
    await store.update(marks, id, (text) => {
      before = readMark(text);
      isFree = before?.state !== "running" || !isAlive(before.pid);
      return isFree ? mark : text!;
    });
    if (isFree) return { id, before };
  }
}

function readMark(text: string | undefined): Mark | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as Mark);
  } catch {
    return undefined;
  }
}

/** Within this time a client that lost its server starts it again. */
const mostPauseMs = 3_600_000;

function wasKilled(before: Mark | undefined, last: Date | undefined): boolean {
  if (before?.state !== "running" || last === undefined) return false;
  return !isAlive(before.pid) && Date.now() - last.getTime() < mostPauseMs;
}

function lastCall(session: Session): Date | undefined {
  const view = session.workLog("recent");
  const time = "recent" in view ? view.recent[0]?.time : undefined;
  return time === undefined ? undefined : new Date(time);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
