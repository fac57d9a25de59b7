/** The spend guard: decides before a tool call of Claude Code whether the limits of the configuration are reached. It
 *  never lets a call pass because something about the money is not known: then it asks and says why. */
import { join } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { countNoun, formatNumber, isPlainObject, messageOf, printable, readJson } from "../../core/text/index.ts";
import { type Config, configDirectory, type Environment, loadConfig, shownPath } from "../../host/index.ts";
import { mayConfigure, readSpend, type Spend } from "../../recordings/index.ts";

interface GuardPlace {
  readonly cwd: string;
  readonly env: Environment;
  readonly now: Date;
}

/** What the guard found. `decision` is absent below the limits. */
interface Verdict {
  readonly decision?: "ask" | "deny" | undefined;
  readonly reason?: string | undefined;
}

/** Returns what the hook prints before a tool call, or undefined if the call may go on. */
export async function guardCall(input: string, place: GuardPlace): Promise<object | undefined> {
  const { env } = place;
  let verdict: Verdict;
  try {
    // A broken input cannot hide a guard: the folder of the process may have one too.
    const hook = readJson(input, isPlainObject) ?? {};
    const cwd = env.CLAUDE_PROJECT_DIR || String(hook.cwd ?? place.cwd);
    if (!mayConfigure("guard", cwd, env)) return undefined;
    const here = { ...place, cwd };
    const { guard, prices } = (await loadConfig(here)).values;
    if (guard.session_usd === undefined && guard.day_usd === undefined) return undefined;
    const { transcript_path: transcript } = hook;
    verdict =
      typeof transcript === "string"
        ? verdictOn(await readSpend({ transcript, env, now: place.now, prices }), guard, here)
        : askBecause("the client did not name the transcript of the session", here);
  } catch (error) {
    const isConfig = error instanceof ContextError && error.code === "invalid_config" && error.file !== undefined;
    verdict = askBecause(messageOf(error), place, isConfig ? `repair ${error.file}` : undefined);
  }
  const { decision, reason } = verdict;
  if (decision === undefined) return undefined;
  // Where nobody can answer, the client would take a question for a refusal, and the agent would go on trying.
  if (!isAttended(env)) return { continue: false, stopReason: reason };
  return {
    hookSpecificOutput: {
      hookEventName: "PreToolUse",
      permissionDecision: decision,
      permissionDecisionReason: reason,
    },
  };
}

/** Claude Code 2.1.325 sets 0 for `-p` and for the SDK, and 1 on a terminal. Older versions only say how they were
 *  started. */
function isAttended({
  CLAUDE_CODE_SESSION_ATTENDED: attended,
  CLAUDE_CODE_ENTRYPOINT: entry = "cli",
}: Environment): boolean {
  return attended === undefined ? !entry.startsWith("sdk") : attended !== "0";
}

/** Returns the verdict on what was spent. A limit is reached when the sum is as large. */
export function verdictOn(spend: Spend, guard: Config["guard"], place: GuardPlace): Verdict {
  const limits = [
    { key: "session_usd", what: "this session has", sum: spend.session },
    { key: "day_usd", what: "today's sessions have", sum: spend.day },
  ].flatMap(({ key, what, sum }) => {
    const limit = guard[key as "session_usd" | "day_usd"];
    return limit === undefined ? [] : [{ key, what, sum, limit }];
  });
  if (limits.length === 0) return {};
  // Sums of dollars are compared in millionths, because fractions add up inexactly.
  const reached = limits.filter(({ sum, limit }) => Math.round(sum.usd * 1e6) >= Math.round(limit * 1e6));
  if (reached.length > 0) {
    const facts = reached.map(({ what, sum, limit }) => `${what} spent $${sum.usd.toFixed(2)} of $${limit.toFixed(2)}`);
    const keys = reached.map(({ key }) => `guard.${key}`).join(" and ");
    const answers = `${formatNumber(spend.session.answers)} answers in this session, sub-agents included`;
    const yes = guard.on_limit === "ask" && isAttended(place.env) ? "allow this call, or " : "";
    return {
      decision: guard.on_limit,
      reason: `Plimsoll's spend guard: ${facts.join("; ")} (${answers}, at list prices of the API; a subscription is billed differently). To continue, ${yes}raise ${keys} in ${configName(place)}.`,
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
    reason: `Plimsoll's spend guard does not know what was spent: ${why}. To continue, ${yes}${remedy}.`,
  };
}

/** Returns the prices of the configuration. */
export async function configuredPrices(cwd: string, env: Environment): Promise<Config["prices"]> {
  return (await loadConfig({ cwd, env })).values.prices;
}
