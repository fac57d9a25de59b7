/** Passes the tool results of a client's sessions through the intake. If something fails, the original stays, and the
 *  session's numbers have the error. */
import { writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import {
  type AdmittedResult,
  contextCollection,
  createIntake,
  type FoundNote,
  type IncomingResult,
  type Intake,
  isOwnNote,
  readOriginal,
} from "../../conversation/intake/index.ts";
import type { Store, StoreRecord } from "../../core/store/index.ts";
import { messageOf } from "../../core/text/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { type Environment, makeDirectory } from "../../host/index.ts";
import { readSavings, type SavedEdit, type Savings } from "../spend/saved-money.ts";
import type { PluginServer } from "./plugin.ts";
import { createSessionRecorder, type PluginEvent, savedTokensFile, type TimedEvent } from "./plugin-sessions.ts";

/** Identifies a context: the main agent of a session, or one of its sub-agents. */
export interface PluginContext {
  readonly sessionId: string;
  /** @default "main" */
  readonly agentId?: string | undefined;
}

export interface PluginAdmission {
  /** Returns what to send instead of the result; undefined if it should stay as it is. Never rejects. */
  admit(context: PluginContext, result: IncomingResult): Promise<AdmittedResult | undefined>;
  /** The client compacted the context or forked the session. With `isKept`, it says which texts are still there. */
  forget(context: PluginContext, isKept?: Parameters<Intake["forget"]>[0]): Promise<void>;
  /** Returns an original if its session is allowed, and counts the recall. */
  recall(id: string, isAllowed: (sessionId: string) => boolean): Promise<string | undefined>;
  /** Returns whether plimsoll wrote a note, in this session or another one. */
  isOwnNote(note: FoundNote): Promise<boolean>;
  /** Adds an event to the session's numbers later, when no client waits for us. */
  record(sessionId: string, event: () => PluginEvent | Promise<PluginEvent>): void;
}

export function createAdmission(options: {
  readonly client: string;
  readonly server: PluginServer;
  /** Says how to get an original. */
  readonly recallHint?: ((id: string) => string) | undefined;
  /** The most tokens that the client itself would send of such a result. More does not count as saved. */
  readonly maxSent?: number | undefined;
}): PluginAdmission {
  const { client, server, recallHint, maxSent = Number.POSITIVE_INFINITY } = options;
  const intakes = new Map<string, Promise<Intake>>();
  const openIntake = ({ sessionId, agentId = "main" }: PluginContext): Promise<Intake> => {
    const key = JSON.stringify([sessionId, agentId]);
    const open = async (): Promise<Intake> =>
      createIntake({
        store: await server.store(),
        sessionId,
        agentId,
        maxResultTokens: server.settings.maxResultTokens,
        deltas: server.settings.deltas,
        recallHint,
        patience: () => new Promise((resolve) => setTimeout(resolve, server.waitMs ?? 50).unref()),
      });
    const intake = intakes.get(key) ?? open();
    intakes.set(key, intake);
    // A store that is locked now may be free for the next result.
    intake.catch(() => intakes.delete(key));
    return intake;
  };
  const events = new Map<string, { readonly at: number; readonly event: () => PluginEvent | Promise<PluginEvent> }[]>();
  const addToSession = createSessionRecorder(client);
  const write = async (sessionId: string): Promise<void> => {
    const waiting = events.get(sessionId) ?? [];
    events.delete(sessionId);
    const happened: TimedEvent[] = [];
    for (const { at, event } of waiting) happened.push({ ...(await event()), at });
    // Nobody waits for the numbers, so a store that is in use by another process is tried again.
    for (let left = 5; ; left--) {
      try {
        const saved = await addToSession(await server.store(), sessionId, happened);
        return await writeSavings(server.env, sessionId, saved, happened).catch((error) =>
          server.log(messageOf(error)),
        );
      } catch (error) {
        if (left === 0) return server.log(messageOf(error));
        await new Promise((resolve) => setTimeout(resolve, 100).unref());
      }
    }
  };
  const later = createLater(server);
  const record: PluginAdmission["record"] = (sessionId, event) => {
    const waiting = events.get(sessionId) ?? [];
    events.set(sessionId, [...waiting, { at: Date.now(), event }]);
    later(waiting.length === 0 ? () => write(sessionId) : undefined);
  };
  return {
    async admit(context, result) {
      try {
        const intake = await openIntake(context);
        const admitted = await intake.admit(result);
        record(context.sessionId, () => describeResult(context, { result, admitted, maxSent }));
        return admitted.edit === "none" ? undefined : admitted;
      } catch (error) {
        record(context.sessionId, () => ({ kind: "error", message: messageOf(error) }));
        return undefined;
      }
    },
    async forget(context, isKept) {
      await (await openIntake(context)).forget(isKept);
    },
    async recall(id, isAllowed) {
      const original = await readOriginal(await server.store(), id);
      if (original === undefined || !isAllowed(original.sessionId)) return undefined;
      record(original.sessionId, () => ({ kind: "recall" }));
      return original.text;
    },
    isOwnNote: async (note) => isOwnNote(await server.store(), note),
    record,
  };
}

async function describeResult(
  { agentId }: PluginContext,
  {
    result: { callId, text },
    admitted: { edit, tokens },
    maxSent,
  }: { readonly result: IncomingResult; readonly admitted: AdmittedResult; readonly maxSent: number },
): Promise<PluginEvent> {
  if (edit === "none") return { kind: "result", edit, savedTokens: 0, tokens, callId, agentId };
  const sentTokens = Math.min(maxSent, (await createCounter("auto")).count(text));
  return { kind: "result", edit, savedTokens: Math.max(0, sentTokens - tokens), tokens, callId, agentId };
}

/** Keeps what each context contains in memory, and writes it to the store later. A context belongs to one process of the
 *  client, so nobody else changes it. If a write fails, the memory still counts: what the store has says nothing of newer
 *  results of the same calls. The next result is written with all before it. */
export function withLateWrites(server: PluginServer): PluginServer {
  const contexts = new Map<string, StoreRecord>();
  const later = createLater(server);
  let last: Promise<unknown> = Promise.resolve();
  const decide = async (store: Store, key: string, change: (value: string | undefined) => string) => {
    const before = contexts.get(key) ?? (await store.get(contextCollection, key));
    const value = change(before?.value);
    const record = { key, value, revision: (before?.revision ?? 0) + 1 };
    contexts.set(key, record);
    later(async () => {
      // A later record has the same lines and more.
      if (contexts.get(key) !== record) return;
      await store.update(contextCollection, key, () => value);
    });
    return record;
  };
  return {
    ...server,
    async store() {
      const store = await server.store();
      return {
        ...store,
        get: async (collection, key) =>
          (collection === contextCollection ? contexts.get(key) : undefined) ?? store.get(collection, key),
        update(collection, key, change) {
          if (collection !== contextCollection) return store.update(collection, key, change);
          const decided = last.then(() => decide(store, key, change));
          last = decided.catch(() => undefined);
          return decided;
        },
      };
    },
  };
}

/** Returns a queue of work for the disk. The work waits until the client has asked for nothing for 300 ms: the disk takes
 *  longer than all the rest, and would slow down the client's next tool call. A client that makes call after call without
 *  a pause has its state written every two seconds. A call without work only makes the queue wait longer. */
function createLater({ beforeEnd, log }: PluginServer): (work: (() => Promise<void>) | undefined) => void {
  const waiting: (() => Promise<void>)[] = [];
  let timer: NodeJS.Timeout | undefined;
  let latest = 0;
  let running = Promise.resolve();
  const runAll = async (): Promise<void> => {
    for (let work = waiting.shift(); work !== undefined; work = waiting.shift())
      await work().catch((error: unknown) => log(messageOf(error)));
  };
  const run = (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    // The end of the process also waits for work that has begun.
    running = running.then(runAll);
    return running;
  };
  beforeEnd?.(run);
  return (work) => {
    const now = Date.now();
    if (timer === undefined) latest = now + 2_000;
    if (work !== undefined) waiting.push(work);
    clearTimeout(timer);
    timer = setTimeout(run, Math.max(0, Math.min(300, latest - now)));
  };
}

/** Writes what was saved where the status line finds it without opening the store. */
async function writeSavings(
  env: Environment,
  sessionId: string,
  savedTokens: number,
  events: readonly TimedEvent[],
): Promise<void> {
  const file = savedTokensFile(env, sessionId);
  const isTrimmed = events.some(({ kind }) => kind === "trim");
  const edits = events.flatMap((event): SavedEdit[] =>
    event.kind === "result" && event.agentId === undefined ? [[event.at, event.savedTokens, event.tokens ?? 0]] : [],
  );
  if (file === undefined || (edits.length === 0 && !isTrimmed)) return;
  const before = readSavings(file);
  const savings: Savings = {
    savedTokens,
    edits: [...(before?.edits ?? []), ...edits].slice(-5_000),
    isTrimmed: isTrimmed || before?.isTrimmed === true,
  };
  makeDirectory(dirname(file), 0o700);
  await writeFile(file, JSON.stringify(savings), { mode: 0o600 });
}
