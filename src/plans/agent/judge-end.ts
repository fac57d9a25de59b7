/** Judges how an agent really ended: reads the events that known agents print, and finds work that was not done although
 *  the exit code is 0. */
import { costOfUsage, type Prices, type UsageCost } from "../../core/billing/index.ts";
import { agentPresets } from "./presets.ts";
import { type AgentReport, createEventReader, cumulative } from "./read-events.ts";
import type { AgentEnd, AgentUsage } from "./watch-agent.ts";

export interface JudgeOptions {
  /** The preset that ran. Without one, the output is the answer. */
  readonly agent?: string | undefined;
  /** Gives usage a price if the agent reports none. */
  readonly model?: string | undefined;
  readonly prices?: Prices | undefined;
  /** What the session had used before this run, if the run continued it. */
  readonly before?: SessionTotals | undefined;
  /** Globs of the files that the agent was asked to change, if none of them changed. */
  readonly unchangedScope?: readonly string[] | undefined;
}

/** What a session had cost when its last run ended. */
export type SessionTotals = Pick<AgentReport, "usage" | "costUsd">;

/** An end with what the agent reports. `totals` are those of its session, for the next run of it. */
export type JudgedEnd = AgentEnd & {
  readonly session?: string | undefined;
  readonly totals?: SessionTotals | undefined;
};

/** Adds the agent's own report to its end. An agent that ended by itself completes only if it reports no error, no tool
 *  was denied and it changed what it was asked to change. Never throws: output in another form is the answer. */
export function judgeEnd(end: AgentEnd, options: JudgeOptions): JudgedEnd {
  const { agent = "", before = {} } = options;
  const prints = Object.hasOwn(agentPresets, agent) ? agentPresets[agent]!.prints : undefined;
  const reader = prints && createEventReader(prints);
  reader?.read("stdout", end.answer);
  reader?.read("stderr", end.stderr);
  const report = reader?.report();
  if (report === undefined) return decideOutcome({ ...end, denials: [] }, {}, options);
  const { answer, denials, session } = report;
  const counted = prints && cumulative[prints];
  const usage = counted === "usage" ? usageSince(report.usage, before.usage) : report.usage;
  const reported = counted === "cost" ? since(report.costUsd, before.costUsd) : report.costUsd;
  const costUsd = reported ?? priceUsage(usage, options);
  const totals = { usage: report.usage, costUsd: report.costUsd };
  return decideOutcome({ ...end, answer, denials, usage, costUsd, session, totals }, report, options);
}

function since(now: number | undefined, before = 0): number | undefined {
  return now === undefined ? undefined : Math.max(0, now - before);
}

function usageSince(now: AgentUsage | undefined, before: AgentUsage | undefined): AgentUsage | undefined {
  if (now === undefined || before === undefined) return now;
  return {
    inputTokens: Math.max(0, now.inputTokens - before.inputTokens),
    cachedTokens: Math.max(0, now.cachedTokens - before.cachedTokens),
    outputTokens: Math.max(0, now.outputTokens - before.outputTokens),
  };
}

function decideOutcome(
  end: JudgedEnd & Pick<AgentReport, "denials">,
  { failure, isOverBudget }: Pick<AgentReport, "failure" | "isOverBudget">,
  { unchangedScope }: JudgeOptions,
): JudgedEnd {
  const { outcome, denials } = end;
  // An agent that we stopped did not end by itself.
  if (outcome !== "completed" && outcome !== "failed") return end;
  if (isOverBudget) {
    const hint = "Raise max_budget_usd, or use --ignore-limits.";
    return { ...end, outcome: "over_budget", error: `The agent stopped: ${failure}.`, hint };
  }
  if (failure !== undefined || outcome === "failed") {
    const error = [end.error ?? "The agent failed.", ...(failure === undefined ? [] : [`It reports: ${failure}`])];
    return { ...end, outcome: "failed", error: error.join(" ") };
  }
  if (denials.length > 0) {
    const maxListed = 5;
    const listed = denials.slice(0, maxListed).join(", ");
    const more = denials.length > maxListed ? ` and ${denials.length - maxListed} more` : "";
    const error = `The agent was not allowed to use: ${listed}${more}.`;
    const hint =
      "Allow more with --allow edit or --allow all, or allow single tools with run.args in your configuration.";
    return { ...end, outcome: "denied", error, hint };
  }
  if (unchangedScope === undefined) return end;
  const error = `The agent changed no file in its scope, ${unchangedScope.join(", ")}.`;
  const hint = "Its answer may say why. Agents that may only read need --allow edit.";
  return { ...end, outcome: "unchanged", error, hint };
}

/** Prices the usage of an agent that reports no cost, at the price of the table for its model. */
function priceUsage(usage: AgentUsage | undefined, { model = "", prices }: JudgeOptions): number | undefined {
  if (usage === undefined) return undefined;
  const { inputTokens, cachedTokens, outputTokens } = usage;
  const details = { cached_tokens: cachedTokens };
  const response = { input_tokens: inputTokens, input_tokens_details: details, output_tokens: outputTokens };
  // A usage that is read counts tokens, so it has a cost.
  const { price, usd } = costOfUsage(response, { model, prices }) as UsageCost;
  // The default price of a provider is a guess.
  return price.isDefault && prices?.[model] === undefined ? undefined : usd;
}
