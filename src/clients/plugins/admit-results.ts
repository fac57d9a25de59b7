/** Admits the tool results of a client's sessions. A failure gives the original back and is counted in the session. */
import { writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import {
  type AdmittedResult,
  createIntake,
  type FoundNote,
  heldCollection,
  type IncomingResult,
  type Intake,
  isOwnNote,
  readOriginal,
} from "../../conversation/intake/index.ts";
import type { Store, StoreRecord } from "../../core/store/index.ts";
import { messageOf } from "../../core/text/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { type Environment, makeDirectory } from "../../host/index.ts";
import type { PluginServer } from "./plugin.ts";
import { type PluginEvent, recordPluginEvents, savedTokensFile } from "./plugin-sessions.ts";

/** A context of its own: a session, and in it the main agent or a sub-agent. */
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
  /** Returns an original of an allowed session, and counts it. */
  recall(id: string, isAllowed: (sessionId: string) => boolean): Promise<string | undefined>;
  /** Returns whether we wrote a note, in whatever session. */
  isOwnNote(note: FoundNote): Promise<boolean>;
  /** Adds an event to the session's numbers, after the client has its answer. */
  record(sessionId: string, event: () => PluginEvent | Promise<PluginEvent>): void;
}

export interface AdmissionOptions {
  readonly client: string;
  readonly server: PluginServer;
  /** Says how to get an original. */
  readonly recallHint?: ((id: string) => string) | undefined;
  /** What the client itself would send of such a result at most, in tokens. More is no saving of ours. */
  readonly mostSent?: number | undefined;
}

/** Nobody waits for the numbers, so a store that is in use by another process is tried again. */
const recordAttempts = 5;
const retryMs = 100;

export function createAdmission(options: AdmissionOptions): PluginAdmission {
  const { client, server, recallHint, mostSent = Number.POSITIVE_INFINITY } = options;
  const intakes = new Map<string, Promise<Intake>>();
  const intakeOf = (context: PluginContext): Promise<Intake> => {
    const { sessionId, agentId = "main" } = context;
    const key = JSON.stringify([sessionId, agentId]);
    const known = intakes.get(key) ?? open(sessionId, agentId);
    intakes.set(key, known);
    // A store that is locked now may be free for the next result.
    known.catch(() => intakes.delete(key));
    return known;
  };
  const open = async (sessionId: string, agentId: string): Promise<Intake> => {
    const { maxResultTokens, deltas } = server.settings;
    return createIntake({
      ...{ store: await server.store(), sessionId, agentId, maxResultTokens, deltas, recallHint },
      patience: () => new Promise((resolve) => setTimeout(resolve, server.waitMs ?? 50).unref()),
    });
  };
  const events = new Map<string, (() => PluginEvent | Promise<PluginEvent>)[]>();
  const write = async (sessionId: string): Promise<void> => {
    const waiting = events.get(sessionId) ?? [];
    events.delete(sessionId);
    const happened: PluginEvent[] = [];
    for (const event of waiting) happened.push(await event());
    for (let left = recordAttempts; ; left--) {
      try {
        const of = { client, sessionId, now: Date.now() };
        const saved = await recordPluginEvents(await server.store(), of, happened);
        return await showSaved(server.env, sessionId, saved).catch((error) => server.log(messageOf(error)));
      } catch (error) {
        if (left === 0) return server.log(messageOf(error));
        await new Promise((resolve) => setTimeout(resolve, retryMs).unref());
      }
    }
  };
  const later = createLater(server);
  const record: PluginAdmission["record"] = (sessionId, event) => {
    const waiting = events.get(sessionId) ?? [];
    events.set(sessionId, [...waiting, event]);
    later(waiting.length === 0 ? () => write(sessionId) : undefined);
  };
  return {
    async admit(context, result) {
      try {
        const intake = await intakeOf(context);
        const admitted = await intake.admit(result);
        record(context.sessionId, async () => {
          const { edit, tokens } = admitted;
          if (edit === "none") return { kind: "result", edit, savedTokens: 0 };
          const sent = Math.min(mostSent, (await createCounter("auto")).count(result.text));
          return { kind: "result", edit, savedTokens: Math.max(0, sent - tokens) };
        });
        return admitted.edit === "none" ? undefined : admitted;
      } catch (error) {
        record(context.sessionId, () => ({ kind: "error", message: messageOf(error) }));
        return undefined;
      }
    },
    async forget(context, isKept) {
      await (await intakeOf(context)).forget(isKept);
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

/** Returns a process that decides in memory on what a context holds, and writes it later. A context belongs to one
 *  process of the client, so nobody else changes it. If a write failed, the next result starts with what the store has.
 *  After a crash, texts that were not written count as not held, and are sent whole. */
export function withLateWrites(server: PluginServer): PluginServer {
  const contexts = new Map<string, StoreRecord>();
  const later = createLater(server);
  let last: Promise<unknown> = Promise.resolve();
  const decide = async (store: Store, key: string, change: (value: string | undefined) => string) => {
    const before = contexts.get(key) ?? (await store.get(heldCollection, key));
    const value = change(before?.value);
    const record = { key, value, revision: (before?.revision ?? 0) + 1 };
    contexts.set(key, record);
    later(async () => {
      // A later one has the same lines and more.
      if (contexts.get(key) !== record) return;
      await store.update(heldCollection, key, () => value).catch(() => contexts.delete(key));
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
          (collection === heldCollection ? contexts.get(key) : undefined) ?? store.get(collection, key),
        update(collection, key, change) {
          if (collection !== heldCollection) return store.update(collection, key, change);
          const decided = last.then(() => decide(store, key, change));
          last = decided.catch(() => undefined);
          return decided;
        },
      };
    },
  };
}

/** In milliseconds. A client that makes call after call without a pause has its state written every two seconds. */
const quietMs = 300;
const longestMs = 2_000;

/** Returns a queue of work for the disk. The work waits until the client has asked for nothing for a while: the disk takes
 *  longer than all the rest, and would slow down the client's next tool call. Without work it only waits longer. */
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
    // Whoever ends the process waits for work that has begun, too.
    running = running.then(runAll);
    return running;
  };
  beforeEnd?.(run);
  return (work) => {
    const now = Date.now();
    if (timer === undefined) latest = now + longestMs;
    if (work !== undefined) waiting.push(work);
    clearTimeout(timer);
    timer = setTimeout(run, Math.max(0, Math.min(quietMs, latest - now)));
  };
}

/** Writes the number where the status line finds it without opening the store. */
async function showSaved(env: Environment, sessionId: string, savedTokens: number): Promise<void> {
  const file = savedTokensFile(env, sessionId);
  if (savedTokens === 0 || file === undefined) return;
  await makeDirectory(dirname(file), 0o700);
  await writeFile(file, JSON.stringify({ savedTokens }), { mode: 0o600 });
}
