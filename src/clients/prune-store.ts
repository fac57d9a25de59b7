/** Deletes sessions, and what was not used for long. It is in this room because it must know what each room below stores. */
import { forgetHistory, listHistories, listHistoryUses } from "../conversation/history/index.ts";
import { forgetIntake, listIntakeUses, pruneIntake } from "../conversation/intake/index.ts";
import { ContextError } from "../core/errors.ts";
import { eventLifeMs, forgetEvents, type MaintainedStore, pruneEvents } from "../core/store/index.ts";
import { didYouMean, isNumber, printable, readAge, readJson } from "../core/text/index.ts";
import type { Environment } from "../host/index.ts";
import { type PrunedNebula, pruneNebulas } from "../plans/nebula/index.ts";
import { forgetServer, runningSessions } from "../results/mcp/index.ts";
import { deleteSession, listStoredSessions, pruneOrphans, type StoredSession } from "../results/session/index.ts";
import { forgetPluginSessions, listPluginSessions } from "./plugins/plugin-sessions.ts";

/** What a prune deletes, and what it keeps although it is old. */
export interface PruneReport {
  readonly sessions: readonly PrunedSession[];
  /** Originals of shortened results. */
  readonly originals: number;
  /** Sessions of AI clients whose numbers in `plugin status` are deleted. */
  readonly pluginSessions: number;
  /** Finished nebulas. */
  readonly nebulas: readonly PrunedNebula[];
  /** Streams that a killed process left. */
  readonly orphans: number;
  /** Events of the stream `events`. */
  readonly events: number;
  readonly kept: readonly { readonly id: string; readonly reason: string }[];
}

export interface PrunedSession {
  readonly id: string;
  readonly calls: number;
  /** Milliseconds since 1970. */
  readonly lastUsed: number;
  /** Whether the store has decisions of a trimmer for it. */
  readonly isTrimmed: boolean;
}

interface PruneOptions {
  /** What was last used before this time is deleted. Milliseconds since 1970. */
  readonly before: number;
  readonly dryRun: boolean;
  /** Says where the status line keeps its files. */
  readonly env: Environment;
  /** @default Date.now */
  readonly now?: (() => number) | undefined;
}

/** Deletes sessions, conversations, originals, numbers of plugins and finished nebulas that were not used since `before`,
 *  and events before that time or older than 30 days. Keeps what a running server has open, results that a newer session
 *  uses, and nebulas that can be resumed. Collections that this version does not know stay as they are. */
export async function pruneStore(store: MaintainedStore, options: PruneOptions): Promise<PruneReport> {
  const { before, dryRun, env, now = Date.now } = options;
  const { old, kept } = await chooseSessions(store, before);
  for (const { id } of dryRun ? [] : old) {
    await deleteSession(store, id);
    await forgetHistory(store, id);
    await forgetServer(store, id);
  }
  const oldPlugins = (await listPluginSessions(store)).filter(({ lastUsed }) => Date.parse(lastUsed) < before);
  if (!dryRun && oldPlugins.length > 0) {
    const sessionIds = new Set(oldPlugins.map(({ sessionId }) => sessionId));
    await forgetPluginSessions(store, { sessionIds, env });
  }
  const nebulas = await pruneNebulas(store, options);
  const unfinished = nebulas
    .filter(({ isFinished }) => !isFinished)
    .map(({ name }) => ({ id: `nebula ${name}`, reason: "it is not finished and can be resumed" }));
  return {
    sessions: old,
    originals: await pruneIntake(store, options),
    pluginSessions: oldPlugins.length,
    nebulas: nebulas.filter(({ isFinished }) => isFinished),
    orphans: await pruneOrphans(store, options),
    events: await pruneEvents(store, { before: Math.max(before, now() - eventLifeMs), dryRun }),
    kept: [...kept, ...unfinished],
  };
}

async function chooseSessions(
  store: MaintainedStore,
  before: number,
): Promise<{ readonly old: readonly PrunedSession[]; readonly kept: PruneReport["kept"] }> {
  const stored = new Map((await listStoredSessions(store)).map((session) => [session.id, session]));
  const histories = await listHistoryUses(store);
  const written = new Map((await store.listFacts("sessions")).map((facts) => [facts.key, facts.written]));
  const running = await runningSessions(store);
  const findLastUse = (id: string): number => {
    const lastUsed = stored.get(id)?.lastUsed;
    const time = lastUsed === undefined ? written.get(id) : Date.parse(lastUsed);
    return Math.max(time ?? 0, histories.get(id) ?? 0);
  };
  const ids = [...new Set([...stored.keys(), ...histories.keys()])];
  const isOld = (id: string): boolean => findLastUse(id) < before;
  /** Results that somebody still uses, with one of the users. */
  const used = new Map(
    ids
      .filter((id) => !isOld(id) || running.has(id))
      .flatMap((id) => (stored.get(id)?.resultsOf ?? []).map((group) => [group, id])),
  );
  const reasonToKeep = (id: string): string | undefined => {
    const pid = running.get(id);
    if (pid !== undefined) return `the server with process ${pid} has it open`;
    const user = used.get(id);
    return user === undefined ? undefined : `session ${user} uses its results`;
  };
  const candidates = ids.filter(isOld).map((id) => ({ id, reason: reasonToKeep(id) }));
  return {
    old: candidates
      .filter(({ reason }) => reason === undefined)
      .map(({ id }) => ({
        id,
        calls: stored.get(id)?.calls ?? 0,
        lastUsed: findLastUse(id),
        isTrimmed: histories.has(id),
      })),
    kept: candidates.flatMap(({ id, reason }) => (reason === undefined ? [] : [{ id, reason }])),
  };
}

/** Prunes a store by the retention of the configuration, unless somebody has done so within a day: a prune reads the names
 *  of all records. */
export async function pruneByRetention(
  store: MaintainedStore,
  {
    retention,
    env,
    now = Date.now,
  }: Pick<PruneOptions, "env"> & { readonly retention: string; readonly now?: () => number },
): Promise<PruneReport | undefined> {
  const age = readAge(retention, "retention");
  const time = now();
  let isDue = false;
  await store.update("upkeep", "pruned", (text) => {
    isDue = time - (readJson(text, isNumber) ?? 0) >= Math.min(86_400_000, age);
    return isDue ? String(time) : text!;
  });
  return isDue ? pruneStore(store, { before: time - age, dryRun: false, env, now }) : undefined;
}

/** Which sessions to remove. */
interface SessionChoice {
  readonly ids: readonly string[];
  readonly all: boolean;
  /** Time of the last call, ISO 8601. */
  readonly before: string | undefined;
}

/** Removes sessions with all that is stored under their ids, except those that a server has open: it returns these as
 *  `kept`. */
export async function removeSessions(
  store: MaintainedStore,
  choice: SessionChoice,
  { dryRun, env }: { readonly dryRun: boolean; readonly env: Environment },
): Promise<{
  readonly deleted: readonly StoredSession[];
  readonly kept: readonly { readonly id: string; readonly pid: number }[];
}> {
  const every = await listEvery(store);
  const chosen = choose(every, choice);
  const running = await runningUsers(store, every);
  const kept = chosen.flatMap(({ id }) => (running.has(id) ? { id, pid: running.get(id)! } : []));
  const [first] = kept;
  if (first !== undefined && choice.ids.length > 0) {
    throw new ContextError("usage", describeUse(first.id, first.pid), { hint: "End the server, and try again." });
  }
  const deleted = chosen.filter(({ id }) => !running.has(id));
  if (dryRun || deleted.length === 0) return { deleted, kept };
  for (const { id } of deleted) {
    await deleteSession(store, id);
    await forgetHistory(store, id);
    await forgetServer(store, id);
  }
  const sessionIds = new Set(deleted.map(({ id }) => id));
  await forgetIntake(store, sessionIds);
  await forgetPluginSessions(store, { sessionIds, env });
  await forgetEvents(store, sessionIds);
  await store.purge();
  return { deleted, kept };
}

/** Lists sessions of servers and programs, and those that only a plugin, an intake or a trimmer has stored. */
async function listEvery(store: MaintainedStore): Promise<StoredSession[]> {
  const sessions = await listStoredSessions(store);
  const plugins = new Map((await listPluginSessions(store)).map((session) => [session.sessionId, session]));
  const intakes = await listIntakeUses(store);
  const histories = await listHistoryUses(store);
  const known = new Set(sessions.map(({ id }) => id));
  const others = new Set([...plugins.keys(), ...intakes.keys(), ...(await listHistories(store))]);
  const findLastUse = (id: string): string | undefined => {
    const plugin = plugins.get(id)?.lastUsed;
    // Without a plugin or an intake nobody says when the conversation ended.
    if (plugin === undefined && !intakes.has(id)) return undefined;
    const written = new Date(Math.max(intakes.get(id) ?? 0, histories.get(id) ?? 0)).toISOString();
    return plugin !== undefined && plugin > written ? plugin : written;
  };
  return [
    ...sessions,
    ...[...others]
      .filter((id) => !known.has(id))
      .map((id) => ({ id, lastUsed: findLastUse(id), calls: plugins.get(id)?.results ?? 0, resultsOf: [id] })),
  ];
}

/** Finds, for each session, a server that has it open or uses its results. */
async function runningUsers(store: MaintainedStore, every: readonly StoredSession[]): Promise<Map<string, number>> {
  const running = await runningSessions(store);
  const shared = every.flatMap(({ id, resultsOf }) => {
    const pid = running.get(id);
    return pid === undefined ? [] : resultsOf.map((group) => [group, pid] as const);
  });
  return new Map([...shared, ...running]);
}

function choose(every: readonly StoredSession[], { ids, all, before }: SessionChoice): readonly StoredSession[] {
  if (all) return every;
  if (before !== undefined) return every.filter(({ lastUsed }) => lastUsed !== undefined && lastUsed < before);
  return ids.map((id) => {
    const found = every.find((session) => session.id === id);
    if (found !== undefined) return found;
    const known = every.map((session) => session.id);
    throw unknownSession(id, known);
  });
}

export function unknownSession(id: string, ids: readonly string[]): ContextError {
  return new ContextError("usage", `there is no session "${id}"`, {
    hint: didYouMean(id, [...ids]) ?? 'See "plimsoll session list".',
  });
}

export function describeUse(id: string, pid: number): string {
  return `session ${printable(id)} is in use by the server with process ${pid}, so it is kept`;
}
