/** Judges how an agent really ended: reads the JSON that some agents print, and finds work that was not done although
 *  the exit code is 0. */
import { costOfUsage, type Prices, type UsageCost } from "../../core/billing/index.ts";
import { isAmount, isPlainObject, readJson, shorten } from "../../core/text/index.ts";
import { agentPresets } from "./presets.ts";
import type { AgentEnd, AgentUsage } from "./watch-agent.ts";

export interface JudgeOptions {
  /** The preset that ran. Without one, the output is the answer. */
  readonly agent?: string | undefined;
  /** Gives usage a price if the agent reports none. */
  readonly model?: string | undefined;
  readonly prices?: Prices | undefined;
  /** Globs of the files that the agent was asked to change, if none of them changed. */
  readonly unchangedScope?: readonly string[] | undefined;
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
  return decideOutcome({ ...end, answer, denials, usage, costUsd }, report, options);
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
  end: AgentEnd & Pick<AgentReport, "denials">,
  { failure, isOverBudget }: Pick<AgentReport, "failure" | "isOverBudget">,
  { unchangedScope }: JudgeOptions,
): AgentEnd {
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

/** Reads the one JSON value that `claude -p --output-format=json` prints. Returns undefined for other output. */
function readClaude({ answer }: AgentEnd): AgentReport | undefined {
  const value = readJson(answer, isPlainObject);
  if (value?.type !== "result") return undefined;
  const { result, subtype, errors, permission_denials: denials } = value;
  const isOverBudget = subtype === "error_max_budget_usd";
  // Claude Code ends such a run with 0 and an empty answer (2.1.327).
  const isStopped = value.terminal_reason === "hook_stopped";
  const text = typeof result === "string" ? result : "";
  const reported = [errors].flat().map((each) => (typeof each === "string" ? each : ""));
  const stopped = isStopped ? 'a hook stopped it. If it was the spend guard, "plimsoll guard" says why' : "";
  const failure = [stopped, ...reported, text, String(subtype)].find((each) => each !== "") ?? "";
  return {
    answer: text,
    denials: [...new Set((Array.isArray(denials) ? denials : []).map(describeDenial))],
    usage: readUsage(value.usage),
    costUsd: isAmount(value.total_cost_usd) ? value.total_cost_usd : undefined,
    failure: value.is_error === true || isOverBudget || isStopped ? shorten(failure, maxCharacters) : undefined,
    isOverBudget,
  };
}

/** The length of what is quoted from an agent's report. */
const maxCharacters = 200;

/** Names a tool, and the file or command that it was denied for. */
function describeDenial(denial: unknown): string {
  const { tool_name = "a tool", tool_input } = isPlainObject(denial) ? denial : {};
  const input = isPlainObject(tool_input) ? tool_input : {};
  const subject = [input.file_path, input.command, input.url].find((each) => typeof each === "string");
  return subject === undefined ? String(tool_name) : `${tool_name} ${shorten(String(subject), maxCharacters)}`;
}

/** Reads the events of `codex exec --json`, one on each line. Its log on stderr has what the sandbox stopped. Returns
 *  undefined for other output. */
function readCodex({ answer, stderr }: AgentEnd): AgentReport | undefined {
  const events = answer.split("\n").map((line) => readJson(line, isPlainObject) ?? {});
  if (!events.some(({ type }) => /^(?:thread|turn|item)\./.test(String(type)))) return undefined;
  const messages = events.flatMap(({ type, item }) =>
    type === "item.completed" && isPlainObject(item) && item.type === "agent_message" ? [String(item.text ?? "")] : [],
  );
  const failed = events.findLast(({ type }) => type === "turn.failed");
  const reason = isPlainObject(failed?.error) ? failed.error.message : undefined;
  const codexDenials =
    /codex_sandboxing::violation: .*?resource=(\S+).*?reason=(\S+)|codex_core::tools::router: error=(.*(?:rejected|denied).*)/g;
  const denials = Array.from(stderr.matchAll(codexDenials), ([, resource, reason, error]) =>
    error === undefined ? `${resource} (${reason})` : shorten(error, maxCharacters),
  );
  return {
    answer: messages.at(-1) ?? "",
    denials: [...new Set(denials)],
    usage: readUsage(events.findLast(({ type }) => type === "turn.completed")?.usage),
    failure: failed === undefined ? undefined : shorten(String(reason ?? "the turn failed"), maxCharacters),
  };
}

/** Anthropic counts cached tokens beside `input_tokens`, OpenAI among them and under another name. */
function readUsage(value: unknown): AgentUsage | undefined {
  if (!isPlainObject(value)) return undefined;
  const count = (name: string) => (isAmount(value[name]) ? value[name] : 0);
  const [input, outputTokens] = [count("input_tokens"), count("output_tokens")];
  if (input + outputTokens === 0) return undefined;
  const apart = count("cache_read_input_tokens");
  return {
    inputTokens: input + apart + count("cache_creation_input_tokens"),
    cachedTokens: apart + count("cached_input_tokens"),
    outputTokens,
  };
}

/** Prices the usage of an agent that reports no cost, at the price of the table for its model. */
function priceUsage({ usage }: AgentReport, { model = "", prices }: JudgeOptions): number | undefined {
  if (usage === undefined) return undefined;
  const { inputTokens, cachedTokens, outputTokens } = usage;
  const details = { cached_tokens: cachedTokens };
  const response = { input_tokens: inputTokens, input_tokens_details: details, output_tokens: outputTokens };
  // A usage that is read counts tokens, so it has a cost.
  const { price, usd } = costOfUsage(response, { model, prices }) as UsageCost;
  // The default price of a provider is a guess.
  return price.isDefault && prices?.[model] === undefined ? undefined : usd;
}
