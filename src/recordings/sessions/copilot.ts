/** Reads sessions of GitHub Copilot CLI (`~/.copilot/session-state/ID/events.jsonl`). Version 1.0.102 records the usage of each
 *  request in a line before its answer. Messages are converted to Anthropic's format. */

import { type Fields, isPlainObject } from "../../core/text/index.ts";
import { readList } from "./gemini.ts";
import { readTime, type SessionDraft } from "./recorded-session.ts";
import { type UsageRecord, usageTogether } from "./recorded-usage.ts";
import { countChars, type FactsDraft, findFile, mainChain } from "./session-facts.ts";
import type { ClientReader } from "./session-scan.ts";

export const copilotReader: ClientReader = {
  agent: "copilot-cli",
  isLine(value) {
    const { type, data, id, parentId } = Object(value) as Fields;
    if (!isPlainObject(data) || typeof id !== "string" || parentId === undefined) return false;
    return /^(session|user|assistant|tool|system)\.\w+$/.test(String(type));
  },
  open(draft, requests) {
    let system: unknown;
    return {
      read(value) {
        const { type, data, timestamp } = Object(value) as Fields;
        const fields = Object(data) as Fields;
        const time = readTime(timestamp);
        const usage = type === "session.usage_record" ? readUsage(fields, time) : undefined;
        requests?.report(usage);
        if (type === "system.message") system = fields.content;
        readEvent({ type, fields, time, usage }, draft);
        if (requests !== undefined) addMessage({ type, fields, time }, requests);
      },
      finish: () => (typeof system === "string" ? { system } : {}),
    };
  },
};

interface CopilotEvent {
  readonly type: unknown;
  readonly fields: Fields;
  readonly time: number | undefined;
}

/** Input tokens include those that were read from the cache. */
function readUsage({ usage }: Fields, time: number | undefined): UsageRecord | undefined {
  const { apiCallId: id, model, inputTokens: input, outputTokens: output, ...cached } = Object(usage) as Fields;
  if (typeof id !== "string") return undefined;
  const tokens = usageTogether({ input, read: cached.cacheReadTokens, write: cached.cacheWriteTokens, output });
  return { id, time, usage: tokens, ...(typeof model === "string" && { model }) };
}

function readEvent(
  { type, fields, time, usage }: CopilotEvent & { readonly usage: UsageRecord | undefined },
  draft: FactsDraft,
): void {
  const { facts, state } = draft;
  const { sessionId, context, toolCallId, toolName, result } = fields;
  if (type === "session.start") {
    facts.session ||= String(sessionId);
    facts.project ||= String((Object(context) as Fields).cwd ?? "");
  }
  if (type === "session.resume") draft.mark(mainChain, "resumed");
  if (type === "session.compaction_complete") draft.mark(mainChain, "compaction", -1);
  if (usage !== undefined) {
    const { interactionType = "conversation-agent" } = Object(fields.usage) as Fields;
    draft.answer(interactionType === "conversation-agent" ? mainChain : String(interactionType), usage);
  }
  if (type === "user.message") {
    draft.input(mainChain, { chars: countChars(fields.transformedContent ?? fields.content), time });
  }
  if (type === "assistant.message") {
    draft.input(mainChain, { chars: countChars(fields.content) + JSON.stringify(fields.toolRequests ?? []).length });
  }
  if (type === "tool.execution_start") {
    state.tools[String(toolCallId)] = { name: String(toolName), file: findFile(fields.arguments) };
  }
  if (type === "tool.execution_complete") {
    const { name, file } = state.tools[String(toolCallId)] ?? {};
    delete state.tools[String(toolCallId)];
    draft.input(mainChain, { chars: countChars((Object(result) as Fields).content), time, tool: name, file });
  }
}

function addMessage({ type, fields, time }: CopilotEvent, requests: SessionDraft): void {
  const { content, transformedContent, toolRequests, apiCallId, toolCallId, result, error } = fields;
  if (type === "user.message") {
    requests.add({ role: "user", content: String(transformedContent ?? content) }, { time });
  }
  if (type === "assistant.message") {
    const text = typeof content === "string" && content !== "" ? [{ type: "text", text: content }] : [];
    const calls = readList(toolRequests).map(({ toolCallId: id, name, arguments: input }) => {
      return { type: "tool_use", id, name, input: Object(input) as object };
    });
    requests.add({ role: "assistant", content: [...text, ...calls] }, { time, answerId: String(apiCallId) });
  }
  if (type === "tool.execution_complete") {
    const { content: found } = Object(result) as Fields;
    const text = typeof found === "string" ? found : JSON.stringify(error ?? found ?? "");
    requests.add(
      { role: "user", content: [{ type: "tool_result", tool_use_id: toolCallId, content: text }] },
      { time },
    );
  }
}
