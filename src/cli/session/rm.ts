import { findAttempts, removeAttempts } from "../../agent/index.ts";
import { ContextError } from "../../errors.ts";
import { forgetHistory, listHistories } from "../../history/index.ts";
import { forgetServer, runningSessions } from "../../mcp/index.ts";
import { deleteSession, listStoredSessions, type StoredSession } from "../../session/index.ts";
import type { Store } from "../../store/index.ts";
import { countNoun, didYouMean, printable } from "../../text/index.ts";
import { type Call, type Command, defineCommand, type OptionSpecs, type OptionValues } from "../command.ts";
import { shownTime } from "./entry-lines.ts";
import { storeOptions, withSessions } from "./open-sessions.ts";

const options = {
  all: { summary: "every session, and the folders of agent runs that have ended" },
  "older-than": { value: "AGE", summary: "sessions that nobody used for so long: 7d, 12h, 30m" },
  "dry-run": { summary: "tell what would be deleted, delete nothing" },
  ...storeOptions,
} as const satisfies OptionSpecs;
type RmCall = Call<OptionValues<typeof options>>;

export const rmCommand: Command = defineCommand({
  arguments: [{ name: "ID", optional: true, repeated: true, summary: "the sessions" }],
  options,
  details: `Deletes sessions for good: the account, the work log, all results, and what a trimmer kept under the same id. Then the store's
file is written anew, so that none of their bytes is left in it or in its log. Servers of one directory have their
results in common; those go with the session that they are named after. A session that a server has open is not deleted.`,
  examples: [
    { line: "plimsoll session rm mcp-shop-0f3a77c2d1", meaning: "one session" },
    { line: "plimsoll session rm --older-than 7d", meaning: "those that nobody used for a week" },
    { line: "plimsoll session rm --all --dry-run", meaning: "what all that is, without deleting it" },
  ],
  async run(call) {
    const choice = readChoice(call);
    const dryRun = call.options["dry-run"] === true;
    const { result } = await withSessions(call, (store) => remove(store, choice, dryRun));
    const { deleted, kept } = result ?? { deleted: [], kept: [] };
    if (result === undefined && choice.ids.length > 0) throw unknownSession(choice.ids[0]!, []);
    const { ended, running } = choice.all ? await findAttempts(call.env) : { ended: [], running: [] };
    if (!dryRun) await removeAttempts(ended);
    for (const { id, pid } of kept) call.output.note(inUse(id, pid));
    if (running.length > 0) call.output.note(`${countNoun(running.length, "agent")} still at work: kept`);
    const told = deleted.map(({ id, lastUsed, calls }) => ({ id, calls, last_used: lastUsed ?? null }));
    const json = { dry_run: dryRun, deleted: told, kept, run_folders: ended };
    return { json, text: renderReport(deleted, { runFolders: ended.length, dryRun }) };
  },
});

interface Choice {
  readonly ids: readonly string[];
  readonly all: boolean;
  /** Of the last call, ISO 8601. */
  readonly before: string | undefined;
}

function readChoice({ arguments: ids, options: given }: RmCall): Choice {
  const all = given.all === true;
  const age = given["older-than"];
  const count = [ids.length > 0, all, age !== undefined].filter(Boolean).length;
  if (count !== 1) {
    throw new ContextError("usage", count === 0 ? "nothing is named" : "only one choice at a time", {
      hint: "Name sessions, or use --all or --older-than AGE.",
    });
  }
  const before = age === undefined ? undefined : new Date(Date.now() - milliseconds(age)).toISOString();
  return { ids, all, before };
}

const units: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

function milliseconds(age: string): number {
  const [, number = "", unit = ""] = /^(\d{1,6})([mhdw])$/.exec(age) ?? [];
  if (number !== "") return Number(number) * units[unit]!;
  throw new ContextError("usage", `--older-than ${age} is no age`, {
    hint: "Use a whole number with m, h, d or w, such as 7d.",
  });
}

interface Removal {
  readonly deleted: readonly StoredSession[];
  /** A server has them open. */
  readonly kept: readonly { readonly id: string; readonly pid: number }[];
}

async function remove(store: Store, choice: Choice, dryRun: boolean): Promise<Removal> {
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
  await store.purge();
  return { deleted, kept };
}

/** Those of servers and programs, and those of which only a trimmer keeps something. */
async function listEvery(store: Store): Promise<StoredSession[]> {
  const sessions = await listStoredSessions(store);
  const known = new Set(sessions.map(({ id }) => id));
  const trimmed = (await listHistories(store)).filter((id) => !known.has(id));
  return [...sessions, ...trimmed.map((id) => ({ id, lastUsed: undefined, calls: 0, resultsOf: id }))];
}

/** By session, the process of a server that has it open, or uses its results. */
async function runningUsers(store: Store, every: readonly StoredSession[]): Promise<Map<string, number>> {
  const running = await runningSessions(store);
  const shared = every.flatMap(({ id, resultsOf }) => {
    const pid = running.get(id);
    return pid === undefined ? [] : [[resultsOf, pid] as const];
  });
  return new Map([...shared, ...running]);
}

function choose(every: readonly StoredSession[], { ids, all, before }: Choice): readonly StoredSession[] {
  if (all) return every;
  if (before !== undefined)
    return every.filter(({ lastUsed }) => lastUsed !== undefined && lastUsed < before);
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
  return `session ${printable(id)} is in use by the server with process ${pid}, and is kept`;
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
