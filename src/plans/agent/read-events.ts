/** Reads the events that known agents print, one JSON value on each line, while they run and after their end: what the
 *  agent does now, its session, its answer, its tokens and dollars, and what it was not allowed to do. */
import { type Fields, isAmount, isPlainObject, oneLine, readJson, shorten } from "../../core/text/index.ts";
import { type AgentEvents, isSessionId } from "./presets.ts";
import type { AgentUsage } from "./watch-agent.ts";

/** What the events of an agent say so far. */
export interface AgentReport {
  readonly answer: string;
  readonly denials: readonly string[];
  /** The session, which a later run can continue. */
  readonly session?: string | undefined;
  readonly usage?: AgentUsage | undefined;
  readonly costUsd?: number | undefined;
  /** What went wrong, in the agent's words. */
  readonly failure?: string | undefined;
  readonly isOverBudget?: boolean | undefined;
}

/** A line for people. `trouble` is something that keeps the agent from its work, such as an error of the API. */
export interface AgentLine {
  readonly kind: "says" | "does" | "trouble";
  readonly text: string;
}

export interface EventReader {
  /** Reads a part of a stream and returns lines for people. Unknown events have none. */
  read(name: "stdout" | "stderr", text: string): readonly AgentLine[];
  /** Returns what is known. Undefined if nothing was an event. */
  report(): AgentReport | undefined;
}

/** Which numbers of a resumed session count from its beginning: seen with Claude Code 2.1.327 and Codex 0.169,
 *  2026-11. */
export const cumulative: Readonly<Partial<Record<AgentEvents, "cost" | "usage">>> = { claude: "cost", codex: "usage" };

export function createEventReader(prints: AgentEvents): EventReader {
  const facts: Facts = { answer: "", denials: new Set(), isRead: false };
  const rest = { stdout: "", stderr: "" };
  return {
    read(name, text) {
      const lines = (rest[name] + text).split("\n");
      rest[name] = lines.pop() ?? "";
      if (name === "stderr") return lines.flatMap((line) => readLog(line, facts));
      return lines.flatMap((line) => {
        const event = readJson(line, isPlainObject);
        return event === undefined ? [] : readEvent(event, prints, facts);
      });
    },
    report() {
      if (rest.stdout !== "") this.read("stdout", "\n");
      if (rest.stderr !== "") this.read("stderr", "\n");
      const { isRead, denials, session, ...report } = facts;
      const known = isSessionId(session) ? { session } : {};
      return isRead ? { ...report, ...known, denials: [...denials] } : undefined;
    },
  };
}

function readEvent(event: Fields, prints: AgentEvents, facts: Facts): AgentLine[] {
  try {
    return readers[prints](event, facts);
  } catch {
    // An object that hides its toString, in place of a text.
    return [];
  }
}

interface Facts extends Omit<{ -readonly [Key in keyof AgentReport]: AgentReport[Key] }, "denials"> {
  readonly denials: Set<string>;
  /** Whether one line was an event of this agent. */
  isRead: boolean;
}

/** The length of what is quoted from an agent's report. */
const maxCharacters = 200;

const says = (text: unknown): AgentLine[] =>
  typeof text === "string" && text.trim() !== "" ? [{ kind: "says", text: text.trim() }] : [];
const does = (text: string): AgentLine[] => [{ kind: "does", text: shorten(oneLine(text), maxCharacters) }];
const trouble = (text: string): AgentLine[] => [{ kind: "trouble", text: shorten(oneLine(text), maxCharacters) }];
const objects = (value: unknown): Fields[] => (Array.isArray(value) ? value.filter(isPlainObject) : []);
const fieldsOf = (value: unknown): Fields => (isPlainObject(value) ? value : {});

const readers: Readonly<Record<AgentEvents, (event: Fields, facts: Facts) => AgentLine[]>> = {
  claude(event, facts) {
    const { type, subtype } = event;
    facts.isRead ||= type === "result" || type === "system" || type === "assistant";
    if (typeof event.session_id === "string") facts.session = event.session_id;
    if (type === "result") return endClaude(event, facts);
    if (type === "assistant") {
      const message = fieldsOf(event.message);
      return objects(message.content).flatMap((block) =>
        block.type === "tool_use" ? does(describeCall(block.name, block.input)) : says(block.text),
      );
    }
    if (subtype === "api_retry")
      return trouble(
        `the API answers ${event.error_status ?? "nothing"} (${String(event.error ?? "no reason").replaceAll("_", " ")}), try ${event.attempt} of ${event.max_retries}`,
      );
    if (subtype === "permission_denied") return trouble(`was not allowed to use ${event.tool_name}: ${event.message}`);
    return [];
  },
  codex(event, facts) {
    const item = fieldsOf(event.item);
    facts.isRead ||= /^(?:thread|turn|item)\./.test(String(event.type));
    switch (event.type) {
      case "thread.started":
        facts.session = String(event.thread_id);
        return [];
      case "turn.completed":
        facts.usage = readUsage(event.usage);
        return [];
      case "turn.failed":
        facts.failure = shorten(String(fieldsOf(event.error).message ?? "the turn failed"), maxCharacters);
        return [];
      case "error":
        return trouble(String(event.message));
      case "item.started":
        return item.type === "command_execution" ? does(`run ${unwrapShell(String(item.command))}`) : [];
      case "item.completed":
        if (item.type === "agent_message") {
          facts.answer = String(item.text ?? "");
          return says(item.text);
        }
        if (item.type !== "file_change") return [];
        return does(
          `edit ${objects(item.changes)
            .map(({ path }) => path)
            .join(", ")}`,
        );
      default:
        return [];
    }
  },
  opencode(event, facts) {
    const part = fieldsOf(event.part);
    facts.isRead ||= typeof event.sessionID === "string";
    if (typeof event.sessionID === "string") facts.session = event.sessionID;
    if (event.type === "text") {
      facts.answer = String(part.text ?? "");
      return says(part.text);
    }
    if (event.type === "tool_use") {
      const state = fieldsOf(part.state);
      const call = describeCall(part.tool, state.input);
      // Its words for a rule that denies a tool.
      const isDenied =
        state.status === "error" && /rule which prevents you|rejected permission/.test(String(state.error));
      if (isDenied) facts.denials.add(call);
      return isDenied ? trouble(`was not allowed to use ${call}`) : does(call);
    }
    if (event.type === "step_finish") {
      const { input, output, cache } = fieldsOf(part.tokens);
      const { read, write } = fieldsOf(cache);
      addUsage(facts, { input, cached: read, written: write, output, cost: part.cost });
    }
    if (event.type !== "error") return [];
    const { name, data } = fieldsOf(event.error);
    facts.failure = shorten(String(fieldsOf(data).message ?? name), maxCharacters);
    return trouble(facts.failure);
  },
  gemini(event, facts) {
    facts.isRead ||= event.type === "init" || event.type === "result";
    if (event.type === "init") facts.session = String(event.session_id);
    if (event.type === "message" && event.role === "assistant") {
      // The answer is what it says after its last tool.
      facts.answer += String(event.content ?? "");
      return says(event.content);
    }
    if (event.type === "tool_use") {
      facts.answer = "";
      return does(describeCall(event.tool_name, event.parameters));
    }
    if (event.type !== "result") return [];
    const stats = fieldsOf(event.stats);
    const { input_tokens: inputTokens, output_tokens: outputTokens, cached: cachedTokens } = stats;
    if (isAmount(inputTokens) && isAmount(outputTokens) && inputTokens + outputTokens > 0)
      facts.usage = { inputTokens, outputTokens, cachedTokens: isAmount(cachedTokens) ? cachedTokens : 0 };
    if (event.status === "error")
      facts.failure = shorten(String(fieldsOf(event.error).message ?? "the agent failed"), maxCharacters);
    return facts.failure === undefined ? [] : trouble(facts.failure);
  },
  pi(event, facts) {
    facts.isRead ||= event.type === "session" || event.type === "agent_start";
    if (event.type === "session") facts.session = String(event.id);
    if (event.type === "tool_execution_start") return does(describeCall(event.toolName, event.args));
    if (event.type === "auto_retry_start")
      return trouble(`the API answers ${event.errorMessage}, try ${event.attempt} of ${event.maxAttempts}`);
    const message = fieldsOf(event.message);
    if (event.type !== "message_end" || message.role !== "assistant") return [];
    const { input, output, cacheRead, cacheWrite, cost } = fieldsOf(message.usage);
    addUsage(facts, { input, cached: cacheRead, written: cacheWrite, output, cost: fieldsOf(cost).total });
    facts.failure =
      message.stopReason === "error" ? shorten(String(message.errorMessage ?? "an error"), maxCharacters) : undefined;
    const text = objects(message.content).flatMap((block) => (block.type === "text" ? [String(block.text)] : []));
    facts.answer = text.join("\n");
    return facts.failure === undefined ? says(facts.answer) : trouble(facts.failure);
  },
};

function endClaude(event: Fields, facts: Facts): AgentLine[] {
  const { result, subtype, errors, permission_denials: denials } = event;
  const text = typeof result === "string" ? result : "";
  const reported = [errors].flat().map((each) => (typeof each === "string" ? each : ""));
  // Claude Code ends such a run with 0 and an empty answer (2.1.327).
  const isStopped = event.terminal_reason === "hook_stopped";
  const stopped = isStopped ? 'a hook stopped it. If it was the spend guard, "plimsoll guard" says why' : "";
  const failure = [stopped, ...reported, text, String(subtype)].find((each) => each !== "") ?? "";
  facts.answer = text;
  facts.isOverBudget = subtype === "error_max_budget_usd";
  facts.usage = readUsage(event.usage);
  facts.costUsd = isAmount(event.total_cost_usd) ? event.total_cost_usd : undefined;
  const hasFailed = event.is_error === true || facts.isOverBudget || isStopped;
  facts.failure = hasFailed ? shorten(failure, maxCharacters) : undefined;
  for (const denial of objects(denials))
    facts.denials.add(describeCall(denial.tool_name ?? "a tool", denial.tool_input));
  return facts.failure === undefined ? [] : trouble(facts.failure);
}

/** What agents print only on stderr: what the sandbox of Codex stopped, and errors of the API. */
function readLog(line: string, facts: Facts): AgentLine[] {
  const codexDenial =
    /codex_sandboxing::violation: .*?resource=(\S+).*?reason=(\S+)|codex_core::tools::router: error=(.*(?:rejected|denied).*)/;
  const denied = codexDenial.exec(line);
  if (denied !== null) {
    const [, resource, reason, error] = denied;
    const text = error === undefined ? `${resource} (${reason})` : shorten(error, maxCharacters);
    facts.denials.add(text);
    return trouble(`was not allowed: ${text}`);
  }
  // Gemini CLI 0.61 and opencode 1.18.33, whose request for a title is beside the work; seen 2026-11.
  const [, status, message] =
    /^Attempt \d+ failed with status (\d+)|"code":(4\d\d|5\d\d)\b/.exec(line) ??
    (line.includes("small=true") ? undefined : /AI_(?:APICall|Retry)Error: ([^"]*)()/.exec(line)) ??
    [];
  const what = status ?? message;
  return what === undefined ? [] : trouble(`the API answers ${what}`);
}

/** Names a tool, and the file or command that it is used for. */
function describeCall(tool: unknown, input: unknown): string {
  const { file_path, filePath, path, command, cmd, pattern, url, description } = fieldsOf(input);
  const subject = [file_path, filePath, path, command, cmd, pattern, url, description].find(
    (each) => typeof each === "string",
  );
  return subject === undefined ? String(tool) : `${tool} ${shorten(oneLine(String(subject)), maxCharacters)}`;
}

/** `/bin/bash -lc 'npm test'` → `npm test`. */
function unwrapShell(command: string): string {
  const [, single, double] = /^\S*sh -l?c (?:'([\s\S]*)'|"([\s\S]*)")$/.exec(command) ?? [];
  return single ?? double ?? command;
}

/** Anthropic counts cached tokens beside `input_tokens`, OpenAI among them and under another name. */
function readUsage(value: unknown): AgentUsage | undefined {
  const fields = fieldsOf(value);
  const count = (name: string) => (isAmount(fields[name]) ? fields[name] : 0);
  const [input, outputTokens] = [count("input_tokens"), count("output_tokens")];
  const apart = count("cache_read_input_tokens");
  const written = count("cache_creation_input_tokens");
  if (input + outputTokens + apart + written === 0) return undefined;
  return {
    inputTokens: input + apart + written,
    cachedTokens: apart + count("cached_input_tokens"),
    outputTokens,
  };
}

/** Adds the tokens and dollars of one request. A cost of 0 means that the agent knows no price. */
function addUsage(
  facts: Facts,
  counts: Readonly<Record<"input" | "cached" | "written" | "output" | "cost", unknown>>,
): void {
  const number = (value: unknown) => (isAmount(value) ? value : 0);
  const { inputTokens = 0, cachedTokens = 0, outputTokens = 0 } = facts.usage ?? {};
  const [input, cached, written, output] = [counts.input, counts.cached, counts.written, counts.output].map(number) as [
    number,
    number,
    number,
    number,
  ];
  if (input + cached + written + output > 0)
    facts.usage = {
      inputTokens: inputTokens + input + cached + written,
      cachedTokens: cachedTokens + cached,
      outputTokens: outputTokens + output,
    };
  const cost = number(counts.cost);
  if (cost > 0) facts.costUsd = (facts.costUsd ?? 0) + cost;
}
