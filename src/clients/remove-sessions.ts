import { forgetHistory, listHistories, listHistoryUses } from "../conversation/history/index.ts";
import { forgetIntake, listIntakeUses } from "../conversation/intake/index.ts";
import { ContextError } from "../core/errors.ts";
import type { MaintainedStore } from "../core/store/index.ts";
import { didYouMean, printable } from "../core/text/index.ts";
import type { Environment } from "../host/index.ts";
import { forgetServer, runningSessions } from "../results/mcp/index.ts";
import { deleteSession, listStoredSessions, type StoredSession } from "../results/session/index.ts";
import { forgetPluginSessions, listPluginSessions } from "./plugins/plugin-sessions.ts";

/** Which sessions to remove. */
export interface SessionChoice {
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
