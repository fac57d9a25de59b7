/** Reads sessions of qwen-code (`~/.qwen/projects/…/chats/*.jsonl`). Messages have Gemini's parts. A telemetry line precedes
 *  the line of an answer; requests of sub-agents have only that one. Messages are converted to Anthropic's format. */

import type { Fields } from "../../core/text/index.ts";
import { convertPart, readList } from "./gemini.ts";
import { nameLine, readTime } from "./recorded-session.ts";
import { type UsageRecord, usageTogether } from "./recorded-usage.ts";
import { countChars, type FactsDraft, findFile, mainChain } from "./session-facts.ts";
import type { ClientReader } from "./session-scan.ts";

export const qwenReader: ClientReader = {
  agent: "qwen-code",
  isLine(value) {
    const { uuid, sessionId, message, systemPayload } = Object(value) as Fields;
    if (typeof uuid !== "string" || typeof sessionId !== "string") return false;
    return Array.isArray((Object(message) as Fields).parts) || typeof systemPayload === "object";
  },
  open(draft, requests) {
    return {
      read(value) {
        const line = Object(value) as Fields;
        const usages = readLine(line, draft);
        for (const usage of usages) requests?.report(usage);
        const { type, uuid, message, timestamp } = line;
        const content = readList((Object(message) as Fields).parts).flatMap(convertPart);
        const role = type === "assistant" ? "assistant" : "user";
        const answerId = role === "assistant" ? String(uuid) : undefined;
        if (content.length > 0) requests?.add({ role, content }, { time: readTime(timestamp), answerId });
        else if (type !== "system") requests?.leaveOut(...nameLine(type));
      },
    };
  },
};

/** What the next line depends on: a request that has no answer in the file yet. */
interface QwenState {
  waiting?: UsageRecord | undefined;
}

/** Finds the facts of a line. Returns the usage that it completes. */
function readLine(line: Fields, draft: FactsDraft): readonly UsageRecord[] {
  const state = draft.state.own as QwenState;
  const { type, subtype, sessionId, cwd, message, systemPayload } = line;
  const { facts } = draft;
  if (typeof sessionId === "string") facts.session ||= sessionId;
  if (typeof cwd === "string") facts.project ||= cwd;
  const time = readTime(line.timestamp);
  if (subtype === "chat_compression") draft.mark(mainChain, "compaction", -1);
  const telemetry = readTelemetry(systemPayload, time);
  if (telemetry !== undefined) {
    const { waiting } = state;
    state.waiting = telemetry;
    // Nothing followed it in the conversation, so a sub-agent or a summary asked for it.
    if (waiting !== undefined) draft.answer("side", waiting);
    return waiting === undefined ? [] : [waiting];
  }
  const usage = type === "assistant" ? readUsage(line, time) : undefined;
  if (usage !== undefined) {
    draft.answer(mainChain, usage);
    state.waiting = undefined;
  }
  readParts((Object(message) as Fields).parts, draft, type === "assistant" ? undefined : time);
  return usage === undefined ? [] : [usage];
}

function readParts(parts: unknown, { state: { tools }, input }: FactsDraft, time: number | undefined): void {
  for (const part of readList(parts)) {
    const { functionCall, functionResponse } = part;
    const { id, name, args } = Object(functionCall ?? functionResponse) as Fields;
    if (functionCall !== undefined) tools[String(id)] = { name: String(name), file: findFile(args) };
    const use = functionResponse === undefined ? undefined : tools[String(id)];
    input(mainChain, { chars: countChars(part), tool: use?.name, file: use?.file, time });
  }
}

function readUsage({ uuid, model, usageMetadata }: Fields, time: number | undefined): UsageRecord | undefined {
  if (typeof usageMetadata !== "object" || usageMetadata === null) return undefined;
  return { id: String(uuid), time, usage: usageMetadata, ...(typeof model === "string" && { model }) };
}

function readTelemetry(payload: unknown, time: number | undefined): UsageRecord | undefined {
  const { uiEvent } = Object(payload) as Fields;
  const event = Object(uiEvent) as Fields;
  if (event["event.name"] !== "qwen-code.api_response") return undefined;
  const { response_id: id, model, input_token_count: input, cached_content_token_count: read } = event;
  const output = Number(event.output_token_count ?? 0) + Number(event.thoughts_token_count ?? 0);
  return { id: String(id), model: String(model), time, usage: usageTogether({ input, read, output }) };
}
