/** Sends a request once more if the provider refuses it for a reason that we can learn from. */
import { ContextError } from "../../core/errors.ts";
import type { Reduction } from "../history/index.ts";
import type { FittedCall } from "./conversation.ts";
import type { Refusal } from "./refusals.ts";

/** A request that is ready to be sent. */
export interface PreparedRequest<Body> {
  readonly body: Body;
  /** Takes the usage of the answer. */
  observe(usage: unknown): void;
  /** Set if the request asks for usage that the caller did not ask for. The answer must not show it. */
  readonly hidesUsage?: boolean | undefined;
  /** Learns from a refusal. Returns what to send instead, or undefined if nothing else can be sent. */
  refused(refusal: Refusal): Promise<PreparedRequest<Body> | undefined>;
}

/** Builds the body of a request from the fitted messages, now and after a refusal. */
export function prepareFitted<Body>(
  fitted: FittedCall,
  build: (reduction: Reduction, fitted: FittedCall) => Body,
): PreparedRequest<Body> {
  return {
    body: build(fitted.reduction, fitted),
    observe: fitted.observe,
    async refused(refusal) {
      const again = await fitted.refused(refusal);
      return again && prepareFitted(again, build);
    },
  };
}

/** What became of one request. */
export interface Outcome<Answer> {
  readonly refusal: Refusal | undefined;
  /** Returns the answer, or throws the caller's own error. `note` says what was tried. */
  settle(note?: ContextError): Answer;
}

/** Sends a request, and after a refusal the one that is prepared instead: once for each kind of refusal. */
export async function sendPrepared<Body, Answer>(
  first: PreparedRequest<Body>,
  send: (prepared: PreparedRequest<Body>) => Promise<Outcome<Answer>>,
): Promise<Answer> {
  const tried = new Map<Refusal["kind"], Refusal>();
  for (let prepared = first; ; ) {
    const { refusal, settle } = await send(prepared);
    if (refusal === undefined) return settle();
    const next = tried.has(refusal.kind) ? undefined : await prepared.refused(refusal);
    if (next === undefined) return settle(tried.size === 0 ? undefined : describeTries(tried));
    tried.set(refusal.kind, refusal);
    prepared = next;
  }
}

/** Returns an SDK's error with a note about what was tried as its cause, unless it has a cause. */
export function withCause<Thrown>(error: Thrown, note: ContextError | undefined): Thrown {
  if (note === undefined || !(error instanceof Error) || error.cause !== undefined) return error;
  Object.defineProperty(error, "cause", { value: note, configurable: true, writable: true });
  return error;
}

function describeTries(tried: ReadonlyMap<Refusal["kind"], Refusal>): ContextError {
  const tries = [...tried.values()].map((refusal) => {
    if (refusal.kind === "thinking") return "a request with thinking, which was sent again without it";
    if (refusal.kind === "stream_options") return "stream_options, which were left out";
    const { tokens, limit } = refusal;
    const size = tokens === undefined ? "a longer one" : `one with ${tokens} tokens`;
    return `${size}${limit === undefined ? "" : ` (it accepts ${limit})`}, which was trimmed again`;
  });
  return new ContextError(
    "context_overflow",
    `the provider refused this request too. Before, it refused ${tries.join(", and ")}`,
  );
}
