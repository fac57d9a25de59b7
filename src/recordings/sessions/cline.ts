/** Reads sessions of cline's command line (`~/.cline/data/sessions/ID/*.messages.json`, version 1). A file is one JSON value
 *  with all messages, which are in Anthropic's format. */

import { type Fields, isPlainObject } from "../../core/text/index.ts";
import { readList } from "./gemini.ts";
import { readTime } from "./recorded-session.ts";
import { type UsageRecord, usageTogether } from "./recorded-usage.ts";
import { countChars, type FactsDraft, findFile, mainChain } from "./session-facts.ts";
import type { ClientReader } from "./session-scan.ts";

export const clineReader: ClientReader = {
  agent: "cline",
  isLine(value) {
    const { sessionId, messages, origin, system_prompt: system } = Object(value) as Fields;
    return (
      typeof sessionId === "string" && Array.isArray(messages) && isPlainObject(origin) && typeof system === "string"
    );
  },
  open(draft, requests) {
    let system: unknown;
    return {
      read(value) {
        const { sessionId, agent, messages, system_prompt: prompt } = Object(value) as Fields;
        system = prompt;
        draft.facts.session ||= String(sessionId);
        if (typeof agent === "string" && agent !== "lead") draft.facts.subAgent = agent;
        for (const message of readList(messages)) {
          const { id, role, content, ts } = message;
          const usage = readUsage(message);
          readMessage(message, draft, usage);
          requests?.report(usage);
          const answerId = role === "assistant" ? String(id) : undefined;
          requests?.add({ role, content: readContent(content) }, { time: readTime(ts), answerId });
        }
      },
      finish: () => (system === undefined ? {} : { system }),
    };
  },
};

/** A tool's result may be a list of other objects. */
function readContent(content: unknown): unknown {
  if (!Array.isArray(content)) return String(content);
  return readList(content).map((block) => {
    const { type, tool_use_id: id, content: result } = block;
    if (type !== "tool_result") return block;
    return { type, tool_use_id: id, content: typeof result === "string" ? result : JSON.stringify(result ?? "") };
  });
}

/** Input tokens include those that were read from the cache. */
function readUsage({ id, role, ts, modelInfo, metrics }: Fields): UsageRecord | undefined {
  if (role !== "assistant" || !isPlainObject(metrics)) return undefined;
  const { inputTokens: input, cacheReadTokens: read, cacheWriteTokens: write, outputTokens: output } = metrics;
  const { id: model } = Object(modelInfo) as Fields;
  const usage = usageTogether({ input, read, write, output });
  return { id: String(id), time: readTime(ts), usage, ...(typeof model === "string" && { model }) };
}

function readMessage({ role, content, ts }: Fields, draft: FactsDraft, usage: UsageRecord | undefined): void {
  if (usage !== undefined) draft.answer(mainChain, usage);
  const time = role === "assistant" ? undefined : readTime(ts);
  const { tools } = draft.state;
  for (const block of readList(content)) {
    const { type, id, name, input, tool_use_id: used, content: result } = block;
    if (type === "tool_use") tools[String(id)] = { name: String(name), file: findFile(input) };
    const use = type === "tool_result" ? tools[String(used)] : undefined;
    const chars = type === "tool_result" ? JSON.stringify(result ?? "").length : countChars(block);
    draft.input(mainChain, { chars, time, tool: use?.name, file: use?.file });
  }
}
