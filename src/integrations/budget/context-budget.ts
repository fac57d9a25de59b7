/** What the doors share: from a request of any provider to one that fits, with state for each conversation. */
import type { Reduction, TrimmerOptions, TrimRequest, TrimStats } from "../../history/index.ts";
import { type FormatName, hashMessage } from "../../messages/index.ts";
import { checkBudgetOptions } from "./check-options.ts";
import { overflowError } from "./overflow-error.ts";
import { createSession, type FittedCall, type Session } from "./session.ts";

export interface ContextBudgetOptions<Request>
  extends Omit<TrimmerOptions, "contextWindow" | "format" | "checkpoint" | "sealed"> {
  /** The model's limit in tokens. Absent: that of the model, where it is known. */
  contextWindow?: number | undefined;
  /** Absent: the request's model. */
  model?: string | undefined;
  /** Tokens kept free for the answer. Absent: what requests ask for, at least 16,000, and at most half of the window. */
  reserve?: number | undefined;
  /** The session of every request. Absent: requests with the same first message of the user are one session. */
  sessionId?: string | undefined;
  /** The session of one request; undefined: as if it were absent. */
  sessionIdOf?: ((request: Request) => string | undefined) | undefined;
  /** What happens to a request that cannot be made to fit: `throw` (default) an error of code `context_overflow`, or `pass` it on
   *  as small as it gets. */
  onOverflow?: "throw" | "pass" | undefined;
  /** Told after each epoch. */
  onTrim?: ((event: TrimEvent) => void) | undefined;
  /** How long the provider's cache lives after a call. Absent: as the provider says. */
  cacheLifetimeMs?: number | undefined;
  now?: (() => number) | undefined;
}

export interface TrimEvent {
  readonly sessionId: string;
  readonly model: string | undefined;
  readonly stats: TrimStats;
  readonly overflow?: Reduction["overflow"];
}

export interface BudgetCall<Request> extends TrimRequest {
  readonly request: Request;
  readonly format: FormatName;
  readonly model: string | undefined;
  readonly maxOutputTokens: number | undefined;
  readonly cacheLifetimeMs: number;
}

export interface ContextBudget<Request> {
  fit(call: BudgetCall<Request>): Promise<FittedCall>;
}

export function createContextBudget<Request>(options: ContextBudgetOptions<Request>): ContextBudget<Request> {
  checkBudgetOptions(options);
  const { sessionIdOf, onOverflow = "throw", onTrim, now = Date.now, cacheLifetimeMs, ...rest } = options;
  const sessions = createSessions((id) => createSession(id, { ...rest, now }));
  return {
    async fit(call) {
      const model = options.model ?? call.model;
      const sessionId = sessionIdOf?.(call.request) ?? options.sessionId ?? conversationOf(call.messages);
      const lifetimeMs = cacheLifetimeMs ?? call.cacheLifetimeMs;
      const fitted = await sessions(sessionId).fit({ ...call, model, cacheLifetimeMs: lifetimeMs });
      const { isEpoch, stats, overflow } = fitted.reduction;
      if (isEpoch) onTrim?.({ sessionId, model, stats, ...(overflow !== undefined && { overflow }) });
      if (overflow !== undefined && onOverflow === "throw") throw overflowError(overflow, fitted.limits);
      return fitted;
    },
  };
}

// A session holds its conversation's messages. One that comes back after it was let go is trimmed anew, or as its store says.
const maxSessions = 100;

/** The sessions used last, by id. */
function createSessions(create: (id: string) => Session): (id: string) => Session {
  const sessions = new Map<string, Session>();
  return (id) => {
    const session = sessions.get(id) ?? create(id);
    sessions.delete(id);
    sessions.set(id, session);
    const [oldest] = sessions.keys();
    if (sessions.size > maxSessions && oldest !== undefined) sessions.delete(oldest);
    return session;
  };
}

/** A history is appended to, forked and rewound behind its first question, so that this tells conversations apart. */
function conversationOf(messages: readonly object[]): string {
  const list = Array.isArray(messages) ? messages : [];
  const first = list.find((message) => Object(message).role === "user");
  return first === undefined ? "default" : hashMessage(first);
}
