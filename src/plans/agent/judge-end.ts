/** Judges how an agent really ended: reads the JSON that some agents print, and finds work that was not done although
 *  the exit code is 0. */
import { costOfUsage, type Prices } from "../../core/billing/index.ts";
import { cutText, isAmount, isPlainObject, oneLine, readJson } from "../../core/text/index.ts";
import { agentPresets } from "./presets.ts";
import type { AgentEnd, AgentUsage } from "./watch-agent.ts";

export interface JudgeOptions {
  /** The preset that ran. Without one, the output is the answer. */
  readonly agent?: string | undefined;
  /** Gives usage a price if the agent reports none. */
  readonly model?: string | undefined;
  readonly prices?: Prices | undefined;
  /** Globs of the files that the agent was asked to change. */
  readonly scope?: readonly string[] | undefined;
  /** Whether a file in the scope changed. Absent if nobody asked for a change. */
  readonly isChanged?: boolean | undefined;
}

/** Adds the agent's own report to its end. An agent that ended by itself completes only if it reports no error, no tool
 *  was denied and it changed what it was asked to change. Never throws: output in another form is the answer. */
export function judgeEnd(end: AgentEnd, options: JudgeOptions): AgentEnd {
  const { agent = "" } = options;
  const prints = Object.hasOwn(agentPresets, agent) ? agentPresets[agent]!.prints : "text";
  const report = prints === "claude" ? readClaude(end) : prints === "codex" ? readCodex(end) : undefined;
  if (report === undefined) return decideOutcome({ ...end, denials: [] }, {}, options);
  const { answer, usage, denials } = report;
  const costUsd = report.costUsd ?? priceUsage(report, options);
  const spent = { ...(usage !== undefined && { usage }), ...(costUsd !== undefined && { costUsd }) };
  return decideOutcome({ ...end, answer, denials, ...spent }, report, options);
}

interface AgentReport {
  readonly answer: string;
  readonly denials: readonly string[];
  readonly usage?: AgentUsage | undefined;
  readonly costUsd?: number | undefined;
  /** What went wrong, in the agent's words. */
  readonly failure?: string | undefined;
  readonly isOverBudget?: boolean | undefined;
}

function decideOutcome(
  end: AgentEnd,
  { failure, isOverBudget }: Pick<AgentReport, "failure" | "isOverBudget">,
  { scope = [], isChanged }: JudgeOptions,
): AgentEnd {
  const { outcome, denials = [] } = end;
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
  if (isChanged !== false) return end;
  const error = `The agent changed no file in its scope, ${scope.join(", ")}.`;
  const hint = "Its answer may say why. Agents that may only read need --allow edit.";
  return { ...end, outcome: "unchanged", error, hint };
}

/** Reads the one JSON value that `claude -p --output-format=json` prints. Returns undefined for other output. */
function readClaude({ answer }: AgentEnd): AgentReport | undefined {
  const value = readJson(answer, isPlainObject);
  if (value?.type !== "result") return undefined;
  const { result, subtype, errors, permission_denials: denials } = value;
  const isOverBudget = subtype === "error_max_budget_usd";
  const text = typeof result === "string" ? result : "";
  const reported = [errors].flat().map((each) => (typeof each === "string" ? each : ""));
  const failure = [...reported, text, String(subtype)].find((each) => each !== "") ?? "";
  return {
    answer: text,
    denials: [...new Set((Array.isArray(denials) ? denials : []).map(describeDenial))],
    usage: readUsage(value.usage, { readsApart: true }),
    costUsd: isAmount(value.total_cost_usd) ? value.total_cost_usd : undefined,
    failure: value.is_error === true || isOverBudget ? cutLine(failure) : undefined,
    isOverBudget,
  };
}

/** Names a tool, and the file or command that it was denied for. */
function describeDenial(denial: unknown): string {
  const { tool_name = "a tool", tool_input } = isPlainObject(denial) ? denial : {};
  const input = isPlainObject(tool_input) ? tool_input : {};
  const subject = [input.file_path, input.command, input.url].find((each) => typeof each === "string");
  return subject === undefined ? String(tool_name) : `${tool_name} ${cutLine(String(subject))}`;
}

/** Reads the events of `codex exec --json`, one on each line. Its log on stderr has what the sandbox stopped. Returns
 *  undefined for other output. */
function readCodex({ answer, stderr }: AgentEnd): AgentReport | undefined {
  const events = answer.split("\n").map((line) => readJson(line, isPlainObject) ?? {});
  if (!events.some(({ type }) => typeof type === "string" && /^(?:thread|turn|item)\./.test(type))) return undefined;
  const messages = events.flatMap(({ type, item }) =>
    type === "item.completed" && isPlainObject(item) && item.type === "agent_message" ? [String(item.text ?? "")] : [],
  );
  const failed = events.findLast(({ type }) => type === "turn.failed");
  const reason = isPlainObject(failed?.error) ? failed.error.message : undefined;
  const codexDenials =
    /codex_sandboxing::violation: .*?resource=(\S+).*?reason=(\S+)|codex_core::tools::router: error=(.*(?:rejected|denied).*)/g;
  const denials = Array.from(stderr.matchAll(codexDenials), ([, resource, reason, error]) =>
    error === undefined ? `${resource} (${reason})` : cutLine(error),
  );
  return {
    answer: messages.at(-1) ?? "",
    denials: [...new Set(denials)],
    usage: readUsage(events.findLast(({ type }) => type === "turn.completed")?.usage, { readsApart: false }),
    failure: failed === undefined ? undefined : cutLine(String(reason ?? "the turn failed")),
  };
}

/** Anthropic counts cached tokens beside `input_tokens`, OpenAI among them. */
function readUsage(value: unknown, { readsApart }: { readonly readsApart: boolean }): AgentUsage | undefined {
  if (!isPlainObject(value)) return undefined;
  const count = (name: string) => (isAmount(value[name]) ? value[name] : 0);
  const [input, outputTokens] = [count("input_tokens"), count("output_tokens")];
  if (input + outputTokens === 0) return undefined;
  if (!readsApart) return { inputTokens: input, cachedTokens: count("cached_input_tokens"), outputTokens };
  const cachedTokens = count("cache_read_input_tokens");
  return { inputTokens: input + cachedTokens + count("cache_creation_input_tokens"), cachedTokens, outputTokens };
}

/** Prices the usage of an agent that reports no cost, at the price of the table for its model. */
function priceUsage({ usage }: AgentReport, { model, prices }: JudgeOptions): number | undefined {
  if (usage === undefined || model === undefined) return undefined;
  const { inputTokens, cachedTokens, outputTokens } = usage;
  const details = { cached_tokens: cachedTokens };
  const response = { input_tokens: inputTokens, input_tokens_details: details, output_tokens: outputTokens };
  const cost = costOfUsage(response, { model, prices });
  // The default price of a provider is a guess.
  return cost === undefined || (cost.price.isDefault && prices?.[model] === undefined) ? undefined : cost.usd;
}

/** Returns at most 200 characters of a text, on one line. */
function cutLine(text: string): string {
  const { text: start, omitted } = cutText(oneLine(text), 200);
  return omitted === 0 ? start : `${start}…`;
}
