import { forgetPluginSessions, listPluginSessions } from "../../clients/index.ts";
import { forgetHistory, listHistories, listHistoryUses } from "../../conversation/history/index.ts";
import { forgetIntake, listIntakeUses } from "../../conversation/intake/index.ts";
import { ContextError } from "../../core/errors.ts";
import type { MaintainedStore } from "../../core/store/index.ts";
import { countNoun, didYouMean, printable, readAge, shownTime } from "../../core/text/index.ts";
import type { Environment } from "../../host/index.ts";
import { lookInStore, storePath } from "../../host/index.ts";
import { findAttempts } from "../../plans/nebula/index.ts";
import { forgetServer, runningSessions } from "../../results/mcp/index.ts";
import { deleteSession, listStoredSessions, type StoredSession } from "../../results/session/index.ts";
import { type Call, type Command, defineCommand, type OptionSpecs, type OptionValues } from "../command.ts";
import { storeOptions } from "../shared-options.ts";

const options = {
  all: { summary: "delete every session, and the folders of finished agent runs" },
  "older-than": { value: "AGE", summary: "delete sessions that were not used for this long: 7d, 12h, 30m" },
  "dry-run": { summary: "show what would be deleted; delete nothing" },
  ...storeOptions,
} as const satisfies OptionSpecs;

type RmCall = Call<OptionValues<typeof options>>;

export const rmCommand: Command = defineCommand({
  arguments: [{ name: "ID", optional: true, repeated: true, summary: "the sessions" }],
  options,
  details: `Deletes sessions: token use, work log, all results, and what a trimmer, an intake or a plugin stored under the
same id. Then rewrites the store's file, so that none of their bytes remain in it or in its log. Servers of one directory
share results; these are deleted with the session whose id they carry. A session that a server has open is not deleted.`,
  examples: [
    { line: "plimsoll session rm mcp-shop-0f3a77c2d1", meaning: "one session" },
    { line: "plimsoll session rm --older-than 7d", meaning: "sessions that were not used for a week" },
    { line: "plimsoll session rm --all --dry-run", meaning: "what --all would delete" },
  ],
  async run(call) {
    const choice = readChoice(call);
    const dryRun = call.options["dry-run"] === true;
    const result = await lookInStore(await storePath(call.options.store, call), (store) =>
      remove(store, choice, { dryRun, env: call.env }),
    );
    const { deleted, kept } = result ?? { deleted: [], kept: [] };
    if (result === undefined && choice.ids.length > 0) throw unknownSession(choice.ids[0]!, []);
    const attempts = choice.all ? await findAttempts(call.env) : undefined;
    const { ended = [], running = [] } = attempts ?? {};
    if (!dryRun) await attempts?.removeEnded();
    for (const { id, pid } of kept) call.output.note(inUse(id, pid));
    if (running.length > 0)
      call.output.note(`${countNoun(running.length, "agent")} still running, so the folders are kept`);
    const told = deleted.map(({ id, lastUsed, calls }) => ({ id, calls, last_used: lastUsed ?? null }));
    const json = { dry_run: dryRun, deleted: told, kept, run_folders: ended };
    return { json, text: renderReport(deleted, { runFolders: ended.length, dryRun }) };
  },
});

interface Choice {
  readonly ids: readonly string[];
  readonly all: boolean;
  /** Time of the last call, ISO 8601. */
  readonly before: string | undefined;
}

function readChoice({ arguments: ids, options: given }: RmCall): Choice {
  const all = given.all === true;
  const age = given["older-than"];
  const count = [ids.length > 0, all, age !== undefined].filter(Boolean).length;
  if (count !== 1) {
    throw new ContextError("usage", count === 0 ? "no session is named" : "too many choices", {
      hint: "Name sessions, or use --all or --older-than AGE.",
    });
  }
  const before = age === undefined ? undefined : new Date(Date.now() - readAge(age, "--older-than")).toISOString();
  return { ids, all, before };
}

interface Removal {
  readonly deleted: readonly StoredSession[];
  /** Sessions that a server has open. */
  readonly kept: readonly { readonly id: string; readonly pid: number }[];
}

interface RemoveOptions {
  readonly dryRun: boolean;
  readonly env: Environment;
}

async function remove(store: MaintainedStore, choice: Choice, { dryRun, env }: RemoveOptions): Promise<Removal> {
  const every = await listEvery(store);
  const chosen = choose(every, choice);
  const running = await runningUsers(store, every);
  const kept = chosen.flatMap(({ id }) => (running.has(id) ? { id, pid: running.get(id)! } : []));
  const [first] = kept;
  if (first !== undefined && choice.ids.length > 0) {
    throw new ContextError("usage", inUse(first.id, first.pid), { hint: "End the server, and try again." });
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
  const lastUsedOf = (id: string): string | undefined => {
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
      .map((id) => ({ id, lastUsed: lastUsedOf(id), calls: plugins.get(id)?.results ?? 0, resultsOf: [id] })),
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

function choose(every: readonly StoredSession[], { ids, all, before }: Choice): readonly StoredSession[] {
  if (all) return every;
  if (before !== undefined) return every.filter(({ lastUsed }) => lastUsed !== undefined && lastUsed < before);
  return ids.map((id) => {
    const found = every.find((session) => session.id === id);
    if (found === undefined)
      throw unknownSession(
        id,
        every.map((session) => session.id),
      );
    return found;
  });
}

function unknownSession(id: string, ids: readonly string[]): ContextError {
  return new ContextError("usage", `there is no session "${id}"`, {
    hint: didYouMean(id, [...ids]) ?? 'See "plimsoll session list".',
  });
}

function inUse(id: string, pid: number): string {
  return `session ${printable(id)} is in use by the server with process ${pid}, so it is kept`;
}

function renderReport(
  deleted: readonly StoredSession[],
  { runFolders, dryRun }: { readonly runFolders: number; readonly dryRun: boolean },
): string {
  const verb = dryRun ? "would delete" : "deleted";
  const lines = deleted.map(({ id, lastUsed, calls }) => {
    const used = lastUsed === undefined ? "" : `, last used ${shownTime(lastUsed)}`;
    return `${verb} ${printable(id)} (${countNoun(calls, "call")}${used})`;
  });
  if (runFolders > 0) lines.push(`${verb} ${countNoun(runFolders, "run folder")}`);
  return lines.length === 0 ? "nothing to delete" : lines.join("\n");
}
