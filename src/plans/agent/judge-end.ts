/** Judges how an agent really ended: reads the JSON that some agents print, and finds work that was not done although
 *  the exit code is 0. */
import { costOfUsage, type Prices } from "../../core/billing/index.ts";
import { cutText, isPlainObject } from "../../core/text/index.ts";
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
  const report = prints === "text" ? undefined : readers[prints](end);
  if (report === undefined) return verdict({ ...end, denials: [] }, {}, options);
  const { answer, usage, denials } = report;
  const costUsd = report.costUsd ?? priceOf(report, options);
  const facts = { ...(usage !== undefined && { usage }), ...(costUsd !== undefined && { costUsd }) };
  return verdict({ ...end, answer, denials, ...facts }, report, options);
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

function verdict(
  end: AgentEnd,
  { failure, isOverBudget }: Pick<AgentReport, "failure" | "isOverBudget">,
  { scope = [], isChanged }: JudgeOptions,
): AgentEnd {
  const { outcome, denials = [] } = end;
  // An agent that we stopped did not end by itself.
  if (outcome !== "completed" && outcome !== "failed") return end;
  if (isOverBudget)
    return { ...end, outcome: "over_budget", error: `The agent stopped: ${failure}.`, hint: raiseLimit };
  if (failure !== undefined || outcome === "failed") {
    const error = [end.error ?? "The agent failed.", ...(failure === undefined ? [] : [`It reports: ${failure}`])];
    return { ...end, outcome: "failed", error: error.join(" ") };
  }
  if (denials.length > 0) {
    const named = denials.slice(0, mostNamed).join(", ");
    const more = denials.length > mostNamed ? ` and ${denials.length - mostNamed} more` : "";
    return { ...end, outcome: "denied", error: `The agent was not allowed to use: ${named}${more}.`, hint: allowMore };
  }
  if (isChanged !== false) return end;
  const error = `The agent changed no file in its scope, ${scope.join(", ")}.`;
  return { ...end, outcome: "unchanged", error, hint: readAnswer };
}

const mostNamed = 5;
const raiseLimit = "Raise max_budget_usd, or use --ignore-limits.";
const allowMore =
  "Allow more with --allow edit or --allow all, or allow single tools with run.args in your configuration.";
const readAnswer = "Its answer may say why. Agents that may only read need --allow edit.";

/** Readers return undefined if the output has another form. */
const readers: Readonly<Record<"claude" | "codex", (end: AgentEnd) => AgentReport | undefined>> = {
  claude: readClaude,
  codex: readCodex,
};

/** The one JSON value that `claude -p --output-format=json` prints. */
function readClaude({ answer }: AgentEnd): AgentReport | undefined {
  const value = parsed(answer);
  if (value?.type !== "result") return undefined;
  const { result, subtype, errors } = value;
  const isOverBudget = subtype === "error_max_budget_usd";
  const text = typeof result === "string" ? result : "";
  const told = [errors].flat().map((each) => (typeof each === "string" ? each : ""));
  const failure = [...told, text, String(subtype)].find((each) => each !== "") ?? "";
  return {
    answer: text,
    denials: unique(listIn(value, "permission_denials").map(describeDenial)),
    usage: readUsage(value.usage, { readsApart: true }),
    costUsd: amount(value.total_cost_usd),
    failure: value.is_error === true || isOverBudget ? shortened(failure) : undefined,
    isOverBudget,
  };
}

/** Names a tool, and the file or command that it was denied for. */
function describeDenial(denial: unknown): string {
  const { tool_name = "a tool", tool_input } = isPlainObject(denial) ? denial : {};
  const input = isPlainObject(tool_input) ? tool_input : {};
  const subject = [input.file_path, input.command, input.url].find((each) => typeof each === "string");
  return subject === undefined ? String(tool_name) : `${tool_name} ${shortened(String(subject))}`;
}

/** The events of `codex exec --json`, a line each. Its log on stderr has what the sandbox stopped. */
function readCodex({ answer, stderr }: AgentEnd): AgentReport | undefined {
  const events = answer.split("\n").flatMap((line) => [parsed(line) ?? {}]);
  if (!events.some(({ type }) => typeof type === "string" && /^(?:thread|turn|item)\./.test(type))) return undefined;
  const messages = events.flatMap(({ type, item }) =>
    type === "item.completed" && isPlainObject(item) && item.type === "agent_message" ? [String(item.text ?? "")] : [],
  );
  const failed = events.findLast(({ type }) => type === "turn.failed");
  const told = isPlainObject(failed?.error) ? failed.error.message : undefined;
  return {
    answer: messages.at(-1) ?? "",
    denials: unique([...stderr.matchAll(codexDenials)].map((match) => describeViolation(match))),
    usage: readUsage(events.findLast(({ type }) => type === "turn.completed")?.usage, { readsApart: false }),
    failure: failed === undefined ? undefined : shortened(String(told ?? "the turn failed")),
  };
}

const codexDenials =
  /codex_sandboxing::violation: .*?resource=(\S+).*?reason=(\S+)|codex_core::tools::router: error=(.*(?:rejected|denied).*)/g;

function describeViolation([, resource, reason, error]: RegExpMatchArray): string {
  return error === undefined ? `${resource} (${reason})` : shortened(error);
}

/** Anthropic counts cached tokens beside `input_tokens`, OpenAI among them. */
function readUsage(value: unknown, { readsApart }: { readonly readsApart: boolean }): AgentUsage | undefined {
  if (!isPlainObject(value)) return undefined;
  const count = (name: string) => amount(value[name]) ?? 0;
  const [input, outputTokens] = [count("input_tokens"), count("output_tokens")];
  if (input + outputTokens === 0) return undefined;
  if (!readsApart) return { inputTokens: input, cachedTokens: count("cached_input_tokens"), outputTokens };
  const cachedTokens = count("cache_read_input_tokens");
  return { inputTokens: input + cachedTokens + count("cache_creation_input_tokens"), cachedTokens, outputTokens };
}

/** Prices the usage of an agent that reports no cost, at the price of the table for its model. */
function priceOf({ usage }: AgentReport, { model, prices }: JudgeOptions): number | undefined {
  if (usage === undefined || model === undefined) return undefined;
  const { inputTokens, cachedTokens, outputTokens } = usage;
  const details = { cached_tokens: cachedTokens };
  const response = { input_tokens: inputTokens, input_tokens_details: details, output_tokens: outputTokens };
  const cost = costOfUsage(response, { model, prices });
  // The default price of a provider is a guess.
  return cost === undefined || (cost.price.isDefault && prices?.[model] === undefined) ? undefined : cost.usd;
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isPlainObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function listIn(value: Record<string, unknown>, name: string): readonly unknown[] {
  const list = value[name];
  return Array.isArray(list) ? list : [];
}

function amount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}

const longestName = 200;

function shortened(text: string): string {
  const { text: start, omitted } = cutText(text.replace(/\s+/g, " ").trim(), longestName);
  return omitted === 0 ? start : `${start}…`;
}
