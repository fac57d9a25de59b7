/** Runs intake and trimming inside a client's own process. The client waits for every hook, and a hook that throws may
 *  cost it a result. So nothing here rejects, and everything has a time limit: then the client's own text stays. */
import { createIntake, createParallelCalls, type ParallelCalls } from "../../conversation/intake/index.ts";
import { bindsThinking } from "../../core/messages/index.ts";
import type { Store } from "../../core/store/index.ts";
import { messageOf } from "../../core/text/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { createClientHistory, type HistoryRequest, type TrimSizes } from "./client-history.ts";
import { createSessionRecorder, type PluginEvent } from "./plugin-sessions.ts";

/** What install writes into a plugin file for the hooks. */
export interface HookSettings {
  readonly maxResultTokens?: number | undefined;
  readonly deltas?: boolean | undefined;
  /** The most tokens of a request, or `window` for the model's own limit. Without it nothing is trimmed. */
  readonly trim?: number | "window" | undefined;
  /** At least so many of the newest results with images keep them. Without it all do. */
  readonly images?: number | undefined;
}

export interface ClientCall {
  /** A sub-agent has a session of its own. */
  readonly sessionId: string;
  readonly callId: string;
  readonly tool: string;
  readonly input: unknown;
  readonly text: string;
  /** Returns which share of its own limit a text takes, if the client cuts this result after our hook. */
  readonly shareOfLimit?: ((text: string) => number) | undefined;
}

/** Names the session for `plimsoll recall` in the client's shell: ids of older versions, such as r12, need it. */
export const sessionVariable = "PLIMSOLL_SESSION";

/** A line for the system text of a client whose history is trimmed. It never changes, so it costs no cache. */
export const recallNote =
  'Where a tool result says "[trimmed: …; recall id ID]", the command "plimsoll recall ID" prints the original.';

export interface InClient {
  /** Whether the history is trimmed. */
  readonly trims: boolean;
  /** The model has made a call. */
  begin(call: Omit<ClientCall, "text">): void;
  /** Returns what the model should see instead of the result; undefined if it should stay as it is. */
  admit(call: ClientCall): Promise<string | undefined>;
  /** The client asks the model again. `callIds` are the calls whose results it sends. */
  endTurn(sessionId: string, callIds: readonly string[]): Promise<void>;
  /** Returns the messages to send instead; undefined if they should stay as they are. */
  trim<Message extends object>(request: HistoryRequest<Message>): Promise<readonly Message[] | undefined>;
  /** Takes the calls whose results have images, oldest first, and the model that answers. */
  withoutImages(callIds: readonly string[], model: string | undefined): LeftOutImages;
  /** The client compacted or rewound the session. After a compaction, `account` names the account of our MCP servers. */
  forget(sessionId: string, account?: string): Promise<void>;
}

export interface LeftOutImages {
  /** The calls whose images are left out, oldest first. */
  readonly old: ReadonlySet<string>;
  /** The newest call at the time when they were left out. The model made earlier thinking with these images, and refuses
   *  that thinking without them. Absent if the model does not bind thinking. */
  readonly since?: string | undefined;
}

/** Replaces an image that is left out. */
export const imageNote = "[An image was here. Only the newest images are sent. Call the tool again to see it.]";

/** The longest that a client waits for us. */
const patienceMs = 50;

export function createInClient({
  client,
  settings,
  openStore,
  waitMs,
}: {
  readonly client: string;
  readonly settings: HookSettings;
  openStore(): Promise<Store>;
  /** The longest that a hook may take.
   *  @default 50, and 900 for the first request of a session */
  readonly waitMs?: number | undefined;
}): InClient {
  const store = openOnce(openStore);
  // The first result should not wait for the database or the tables of the counter.
  void Promise.allSettled([store(), createCounter("auto")]);
  const sessions = new Map<string, Promise<ClientSession>>();
  const findCalls = createCallFinder();
  /** Sessions whose contexts are gone, although the store does not know it yet. */
  const compacted = new Set<string>();
  const forgetContext = async (sessionId: string, kept: ReadonlySet<string> = new Set()): Promise<void> => {
    compacted.add(sessionId);
    await attempt(sessionId, waitMs ?? patienceMs, async ({ intake }) => {
      await intake.forget(({ callId = "" }) => kept.has(callId));
      compacted.delete(sessionId);
    });
  };
  const record = createRecorder(client, store);
  const findSession = (sessionId: string): Promise<ClientSession> => {
    const known = sessions.get(sessionId) ?? store().then((opened) => openSession(sessionId, opened, settings));
    sessions.set(sessionId, known);
    known.catch(() => sessions.delete(sessionId));
    return known;
  };
  const attempt = <Result>(sessionId: string, ms: number, work: (session: ClientSession) => Promise<Result>) => {
    const failed = (error: unknown): undefined => {
      void record(sessionId, { kind: "error", message: messageOf(error) });
    };
    return within(ms, findSession(sessionId).then(work).catch(failed));
  };
  return {
    trims: settings.trim !== undefined,
    begin: ({ sessionId, callId, tool, input }) => findCalls(sessionId).begin(callId, { tool, input }),
    async endTurn(sessionId, callIds) {
      const calls = findCalls(sessionId);
      calls.endTurn();
      const sent = new Set(callIds);
      // A client may remove old results, or go back to an earlier message.
      if (!calls.hasAllIn(sent)) await forgetContext(sessionId, sent);
    },
    admit(call) {
      // The intake gives up 3 ms before the client does, so that it knows what was sent.
      const lateAt = performance.now() + (waitMs ?? patienceMs) - 3;
      return attempt(call.sessionId, waitMs ?? patienceMs, async (session) => {
        const { intake, history, count } = session;
        const { callId, tool, input, text, shareOfLimit } = call;
        if (compacted.has(call.sessionId)) await intake.forget();
        compacted.delete(call.sessionId);
        const together = findCalls(call.sessionId).end(callId);
        session.late.at = lateAt;
        const admitted = await intake.admit({ callId, tool, input, text, shareOfLimit, ...together });
        const { edit, tokens } = admitted;
        const isEdited = edit !== "none";
        const savedTokens = isEdited ? Math.max(0, count(text) - tokens) : 0;
        void history?.noteResult(call, admitted).catch(() => undefined);
        void record(call.sessionId, { kind: "result", edit, savedTokens, tokens, callId });
        return isEdited ? admitted.text : undefined;
      });
    },
    trim(request) {
      if (settings.trim === undefined) return Promise.resolve(undefined);
      // The first request of a session also waits for the store and for what was trimmed earlier: a request with other
      // bytes than the last one would be billed in full.
      const ms = waitMs ?? (sessions.has(request.sessionId) ? patienceMs : 900);
      const { sessionId } = request;
      const onTrim = (sizes: TrimSizes): void => void record(sessionId, { kind: "trim", ...sizes });
      return attempt(sessionId, ms, async ({ history }) => history?.reduce({ ...request, onTrim }));
    },
    withoutImages: (callIds, model) => chooseOldImages(callIds, settings.images, bindsThinking(model)),
    forget: (sessionId, account) => forgetContext(sessionId).then(() => giveRoomBack(store, account)),
  };
}

/** Adds events to the numbers of a session. A failure is nothing that the client should hear of. */
function createRecorder(client: string, store: () => Promise<Store>) {
  const addToSession = createSessionRecorder(client);
  return async (sessionId: string, event: PluginEvent): Promise<void> => {
    const timed = { ...event, at: Date.now() };
    await store()
      .then((opened) => addToSession(opened, sessionId, [timed]))
      .catch(() => undefined);
  };
}

async function giveRoomBack(openStore: () => Promise<Store>, account: string | undefined): Promise<void> {
  if (account === undefined) return;
  const { compactSession } = await import("../../results/session/index.ts");
  await compactSession(await openStore(), account);
}

/** Leaves out the images of old results in batches, because each change of earlier messages costs the prompt cache. A
 *  batch has as many results as always keep their images. */
function chooseOldImages(callIds: readonly string[], newest: number | undefined, isBound: boolean): LeftOutImages {
  const rounds = newest === undefined ? 0 : Math.floor((callIds.length - newest) / newest);
  if (newest === undefined || !(rounds > 0)) return { old: new Set() };
  const since = isBound ? callIds[(rounds + 1) * newest - 1] : undefined;
  return { old: new Set(callIds.slice(0, rounds * newest)), since };
}

interface SessionCalls extends ParallelCalls {
  /** Returns whether these have all calls of the last request; false before the first one. */
  hasAllIn(callIds: ReadonlySet<string>): boolean;
}

/** Returns a function that finds the calls of a session. */
function createCallFinder(): (sessionId: string) => SessionCalls {
  const known = new Map<string, SessionCalls>();
  const create = (): SessionCalls => {
    let last: ReadonlySet<string> | undefined;
    return {
      ...createParallelCalls(),
      hasAllIn(callIds) {
        const before = last;
        last = callIds;
        return before !== undefined && [...before].every((callId) => callIds.has(callId));
      },
    };
  };
  return (sessionId) => {
    const calls = known.get(sessionId) ?? create();
    known.set(sessionId, calls);
    return calls;
  };
}

function openOnce(openStore: () => Promise<Store>): () => Promise<Store> {
  let opened: Promise<Store> | undefined;
  return () => {
    opened ??= openStore();
    // A store that cannot be opened now may be free for the next result.
    opened.catch(() => {
      opened = undefined;
    });
    return opened;
  };
}

type ClientSession = Awaited<ReturnType<typeof openSession>>;

async function openSession(sessionId: string, store: Store, settings: HookSettings) {
  const { maxResultTokens, deltas, trim } = settings;
  const counter = await createCounter("auto");
  /** When the intake gives up the next result. The client has taken its own text by then, and may have cut it. */
  const late = { at: 0 };
  const patience = (): Promise<void> =>
    new Promise((resolve) => setTimeout(resolve, Math.max(0, late.at - performance.now())).unref());
  const intake = await createIntake({ counter, store, sessionId, maxResultTokens, deltas, patience });
  const history = trim === undefined ? undefined : await createClientHistory({ store, sessionId, intake, trim });
  return { late, intake, history, count: counter.count };
}

/** Returns undefined if the work takes longer. */
async function within<Result>(ms: number, work: Promise<Result | undefined>): Promise<Result | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
