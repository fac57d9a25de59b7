/** The spend guard: decides before a tool call of Claude Code whether the limits of the configuration are reached. It
 *  never lets a call pass because something about the money is not known: then it asks and says why. */
import { join } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { createEventWriter, type EventWriter } from "../../core/store/index.ts";
import { countNoun, type Fields, isPlainObject, messageOf, printable, readJson } from "../../core/text/index.ts";
import {
  type Config,
  configDirectory,
  type Environment,
  loadConfig,
  openStore,
  readForeign,
  shownPath,
  storeFile,
} from "../../host/index.ts";
import { findSubAgents, mayConfigure, readSpend, type Spend } from "../../recordings/index.ts";
import { type GuardRecord, readGuardRecord, writeGuardRecord } from "./guard-record.ts";

interface GuardPlace {
  readonly cwd: string;
  readonly env: Environment;
  readonly now: Date;
}

/** What the guard found. `decision` is absent below the limits. */
interface Verdict {
  readonly decision?: "ask" | "deny" | undefined;
  readonly reason?: string | undefined;
  /** What a person allows by a yes: dollars by limit, */
  readonly allows?: Readonly<Record<string, number>> | undefined;
  /** or a cause for which nobody knows what was spent. */
  readonly accepts?: readonly string[] | undefined;
}

/** Returns what the hook prints before a tool call, or undefined if the call may go on. */
export async function guardCall(input: string, place: GuardPlace): Promise<object | undefined> {
  const { env } = place;
  // A broken input cannot hide a guard: the folder of the process may have one too.
  const hook = readJson(input, isPlainObject) ?? {};
  const here = { ...place, cwd: env.CLAUDE_PROJECT_DIR || String(hook.cwd ?? place.cwd) };
  try {
    if (!mayConfigure("guard", here.cwd, env)) return undefined;
    const { guard, prices } = (await loadConfig(here)).values;
    if (guard.session_usd === undefined && guard.day_usd === undefined) return undefined;
    const { transcript_path: transcript } = hook;
    if (typeof transcript !== "string")
      return stop(hook, askBecause("the client did not name the transcript of the session", here), here);
    const record = await takeAnswer({ ...readGuardRecord(env, String(hook.session_id)), transcript });
    // The client writes an answer a moment after its first call. Without a wait, the guard would be one call late.
    if (typeof hook.tool_use_id === "string") await findLine(transcript, `"id":${JSON.stringify(hook.tool_use_id)}`, 4);
    const spend = await readSpend({ transcript, env, now: place.now, prices });
    return stop(hook, verdictOn(spend, guard, { ...here, record }), { ...here, record, spend });
  } catch (error) {
    const isConfig = error instanceof ContextError && error.code === "invalid_config" && error.file !== undefined;
    return stop(hook, askBecause(messageOf(error), here, isConfig ? `repair ${error.file}` : undefined), here);
  }
}

/** Remembers a stop, and returns the answer for the client. Returns undefined if the call may go on. */
async function stop(
  hook: Fields,
  { decision: wanted, reason = "", allows = {}, accepts }: Verdict,
  place: GuardPlace & { readonly record?: GuardRecord; readonly spend?: Spend },
): Promise<object | undefined> {
  const { env, now, spend } = place;
  const [sessionId, callId, tool] = [hook.session_id, hook.tool_use_id, hook.tool_name].map(String) as [
    ...[string, string, string],
  ];
  const record = place.record ?? readGuardRecord(env, sessionId);
  const isAccepted = accepts?.every((cause) => record.accepted.includes(cause)) ?? false;
  if (wanted === undefined || isAccepted) return undefined;
  const decision = isAttended(env) ? wanted : "deny";
  const stops = [...record.stops, { at: now.toISOString(), decision, tool, reason }].slice(-5);
  const asked = decision === "ask" ? { callId, allows, accepts: accepts ?? [] } : undefined;
  await writeGuardRecord(env, sessionId, { ...record, stops, asked }).catch(() => {});
  const agentId = typeof hook.agent_id === "string" ? hook.agent_id : undefined;
  const numbers = { decision, tool, session_usd: spend?.session.usd, day_usd: spend?.day.usd };
  await recordEvent(place, { sessionId, agentId, callId, numbers });
  const answer = {
    hookSpecificOutput: {
      hookEventName: "PreToolUse",
      permissionDecision: decision,
      permissionDecisionReason: reason,
    },
  };
  // Where nobody can answer, a refusal alone would let the agent go on trying, and the end of the run alone would let
  // this call run (Claude Code 2.1.326).
  if (!isAttended(env)) return { continue: false, stopReason: reason, ...answer };
  // The question shows its reason for commands of the shell only (2.1.327). Others have it in the conversation.
  return decision === "ask" && tool !== "Bash" ? { systemMessage: reason, ...answer } : answer;
}

/** Looks in the transcripts whether a person said yes to the last question: then the call has a result. */
async function takeAnswer(record: GuardRecord): Promise<GuardRecord> {
  const { asked, allowed, accepted, transcript } = record;
  if (asked === undefined) return record;
  const { callId, allows, accepts } = asked;
  const line = await findLine(transcript, `"tool_use_id":${JSON.stringify(callId)}`, 6);
  if (line === undefined) return record;
  const { toolUseResult, toolDenialKind } = readJson(line, isPlainObject) ?? {};
  // A rule, a hook or an interrupt can end a call too, before anybody has answered (Claude Code 2.1.327).
  const isRefused = toolUseResult === "User rejected tool use" || typeof toolDenialKind === "string";
  const { asked: _, ...rest } = record;
  return isRefused
    ? rest
    : { ...rest, allowed: { ...allowed, ...allows }, accepted: [...new Set([...accepted, ...accepts])] };
}

/** Finds a line in the transcripts of a session. Looks several times, because the client writes them with a delay. */
async function findLine(transcript: string, part: string, attempts: number): Promise<string | undefined> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    if (attempt > 0) await new Promise((resolve) => setTimeout(resolve, 60));
    for (const path of [transcript, ...findSubAgents(transcript)]) {
      const text = readForeign(path, { maxBytes: 1e9 });
      const at = Buffer.isBuffer(text) ? text.lastIndexOf(part) : -1;
      if (Buffer.isBuffer(text) && at >= 0)
        return text.subarray(text.lastIndexOf(10, at) + 1, text.indexOf(10, at) + 1).toString("utf8");
    }
  }
  return undefined;
}

/** Lets a session spend more. Returns up to how many dollars, by limit. */
export async function allowMore(
  usd: number,
  {
    sessionId,
    guard,
    place,
    prices,
  }: {
    readonly sessionId: string;
    readonly guard: Config["guard"];
    readonly place: GuardPlace;
    readonly prices: Config["prices"];
  },
): Promise<Readonly<Record<string, number>>> {
  const { env, now } = place;
  const { asked: _, ...record } = readGuardRecord(env, sessionId);
  const spend = await readSpend({ transcript: record.transcript, env, now, prices });
  const sums = listLimits(spend, guard, { ...place, record });
  const allowed = Object.fromEntries(sums.map(({ key, sum, limit }) => [key, Math.max(limit, sum.usd + usd)]));
  await writeGuardRecord(env, sessionId, { ...record, allowed: { ...record.allowed, ...allowed } });
  return allowed;
}

/** Adds a stop to the stream of events. A store that cannot be opened must not change the guard's answer. */
async function recordEvent(
  { cwd, env, now }: GuardPlace,
  event: Omit<Parameters<EventWriter["write"]>[0], "kind" | "source" | "client">,
): Promise<void> {
  try {
    const place = storeFile(undefined, { cwd, env, config: await loadConfig({ cwd, env }) });
    const store = await openStore({ place, waitMs: 500 });
    const writer = createEventWriter(store, { now: () => now.getTime(), onFailure: () => {} });
    writer.write({ ...event, source: "guard", client: "claude-code", kind: "guard" });
    await writer.settled();
    await store.close();
  } catch {
    // The session's own record has the stop.
  }
}

/** Claude Code 2.1.325 sets 0 for `-p` and for the SDK, and 1 on a terminal. Older versions only say how they were
 *  started. */
function isAttended({
  CLAUDE_CODE_SESSION_ATTENDED: attended,
  CLAUDE_CODE_ENTRYPOINT: entry = "cli",
}: Environment): boolean {
  return attended === undefined ? !entry.startsWith("sdk") : attended !== "0";
}

interface JudgedPlace extends GuardPlace {
  /** What the session was allowed. */
  readonly record?: Pick<GuardRecord, "allowed"> | undefined;
}

interface Limit {
  readonly key: string;
  readonly setting: string;
  readonly what: string;
  readonly sum: Spend["session"];
  /** The configured one. */
  readonly usd: number;
  /** The one that counts, with what a person allowed. */
  readonly limit: number;
}

function listLimits(spend: Spend, guard: Config["guard"], { now, record }: JudgedPlace): Limit[] {
  const day = `day_usd ${now.toDateString()}`;
  return [
    { key: "session_usd", setting: "session_usd", what: "this session has", sum: spend.session },
    { key: day, setting: "day_usd", what: "today's sessions have", sum: spend.day },
  ].flatMap((each) => {
    const usd = guard[each.setting as "session_usd" | "day_usd"];
    return usd === undefined ? [] : [{ ...each, usd, limit: Math.max(usd, record?.allowed[each.key] ?? 0) }];
  });
}

/** Returns the verdict on what was spent. A limit is reached when the sum is as large. */
export function verdictOn(spend: Spend, guard: Config["guard"], place: JudgedPlace): Verdict {
  const limits = listLimits(spend, guard, place);
  if (limits.length === 0) return {};
  // Sums of dollars are compared in millionths, because fractions add up inexactly.
  const reached = limits.filter(({ sum, limit }) => Math.round(sum.usd * 1e6) >= Math.round(limit * 1e6));
  const [first] = reached;
  if (first !== undefined) {
    const money = (usd: number): string => `$${usd.toFixed(2)}`;
    const facts = reached.map(({ what, sum, limit }) => `${what} spent ${money(sum.usd)} of ${money(limit)}`);
    const keys = reached.map(({ setting }) => `guard.${setting}`).join(" and ");
    const answers = `${countNoun(spend.session.answers, "answer")} in this session, sub-agents included`;
    const isQuestion = guard.on_limit === "ask" && isAttended(place.env);
    const next = reached.map(({ sum, usd }) => money(sum.usd + usd)).join(" and ");
    const yes = isQuestion ? `allow this call (the next question comes at ${next}), or ` : "";
    return {
      decision: guard.on_limit,
      reason: `Plimsoll's spend guard: ${facts.join("; ")} (${answers}, at list prices of the API; a subscription is billed differently). To continue, ${yes}run "plimsoll guard allow ${first.usd}" for ${money(first.usd)} more, or raise ${keys} in ${configName(place)}.`,
      allows: Object.fromEntries(reached.map(({ key, sum, usd }) => [key, sum.usd + usd])),
    };
  }
  const [problem] = spend.problems;
  if (problem !== undefined) {
    const { file, cause } = problem;
    const why = typeof cause === "number" ? `${countNoun(cause, "line")} cannot be read` : messageOf(cause);
    return askBecause(`a transcript could not be read: ${file}: ${why}`, place);
  }
  const unpriced = [...new Set(limits.flatMap(({ sum }) => sum.unpriced))];
  if (unpriced.length === 0) return {};
  const names = unpriced.map((model) => `"${printable(model)}"`).join(", ");
  return askBecause(`the price of ${names} is not known. Set it under prices in the configuration`, place);
}

function configName({ cwd, env }: GuardPlace): string {
  return shownPath(join(configDirectory(env), "config.yaml"), cwd, env);
}

function askBecause(why: string, place: GuardPlace, remedy = `remove guard from ${configName(place)}`): Verdict {
  const yes = isAttended(place.env) ? "allow this call, or " : "";
  return {
    decision: "ask",
    accepts: [why],
    reason: `Plimsoll's spend guard does not know what was spent: ${why}. To continue, ${yes}${remedy}.`,
  };
}

/** Returns the prices of the configuration. */
export async function configuredPrices(cwd: string, env: Environment): Promise<Config["prices"]> {
  return (await loadConfig({ cwd, env })).values.prices;
}
