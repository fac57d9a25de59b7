/** Reads sessions of opencode, as `opencode export` writes them: `{ info, messages: [{ info, parts }] }`. Its database
 *  has the same messages and parts. Messages are converted to Anthropic's format. */

import type { Fields } from "../../core/text/index.ts";
import { createSessionDraft, type RecordedSession, type SessionDraft, timeOf } from "./recorded-session.ts";
import { type UsageRecord, usageApart } from "./recorded-usage.ts";
import {
  charsOf,
  createFacts,
  createFactsDraft,
  type FactsDraft,
  fileOfInput,
  mainChain,
  type SessionFacts,
} from "./session-facts.ts";

/** Whether a JSON value is an exported session. */
export function isOpencodeExport(value: unknown): boolean {
  const { info, messages } = Object(value) as Fields;
  if (!Array.isArray(messages) || typeof info !== "object") return false;
  return messages.every((message) => {
    const { info: own, parts } = Object(message) as Fields;
    return typeof own === "object" && own !== null && Array.isArray(parts);
  });
}

/** Each assistant message answers one request, except for the summary of a compaction: the client asks for it with the
 *  conversation as one text. The next request starts with the user message that asked for it, the summary, and the last
 *  messages before it that the program kept. */
export function readOpencodeSession(value: unknown, file: string): RecordedSession {
  const { messages } = value as { readonly messages: readonly OpencodeMessage[] };
  const draft = createSessionDraft();
  let history: object[] = [];
  /** The first message of the history for each id. */
  const firstOf = new Map<unknown, object>();
  let keptFrom: unknown;
  let isGrowing = false;
  for (const { info, parts } of messages) {
    draft.report(usageOfMessage(info));
    if (info.role === "user") {
      const asked = { role: "user", content: userBlocks(parts, draft) };
      history.push(asked);
      firstOf.set(info.id, asked);
      keptFrom = parts.find(({ type }) => type === "compaction")?.tail_start_id;
      continue;
    }
    const { answer, results } = answerOf(parts);
    // The program does not send an answer that failed before it said anything.
    if (answer.content.length === 0) continue;
    firstOf.set(info.id, answer);
    if (info.summary === true) {
      draft.count("compaction");
      const first = history.indexOf(firstOf.get(keptFrom) as object);
      isGrowing = false;
      history = [...history.slice(-1), answer, ...(first < 0 ? [] : history.slice(first, -1))];
    } else {
      const { created, completed } = Object(info.time) as Fields;
      draft.request(history, { known: isGrowing ? draft.length : 0, time: timeOf(created) });
      isGrowing = true;
      draft.add(answer, { time: timeOf(completed), answerId: idOf(info) });
      history.push(answer, ...results);
    }
  }
  return draft.finish({ file, source: "opencode", format: "anthropic" });
}

/** A fork copies messages with new ids and the same times. */
function idOf({ id, time }: Fields): string {
  const { created, completed } = Object(time) as Fields;
  return typeof completed === "number" ? `${created}-${completed}` : String(id);
}

interface OpencodeMessage {
  readonly info: Fields;
  readonly parts: readonly Fields[];
}

/** Returns what a message of opencode reports about its tokens. */
function usageOfMessage(info: Fields): UsageRecord | undefined {
  const { tokens, modelID: model, time } = info;
  if (typeof tokens !== "object" || tokens === null) return undefined;
  const { input, output, reasoning, cache } = tokens as Fields;
  const { read, write } = Object(cache) as Fields;
  return {
    id: idOf(info),
    ...(typeof model === "string" && { model }),
    time: timeOf((Object(time) as Fields).created),
    usage: usageApart({ input, read, write, output: Number(output ?? 0) + Number(reasoning ?? 0) }),
  };
}

function userBlocks(parts: readonly Fields[], draft: SessionDraft): readonly object[] {
  return parts.flatMap(({ type, text, ignored, mime, url }): object[] => {
    if (type === "text" && ignored !== true) return [{ type, text }];
    if (type === "compaction") return [{ type: "text", text: "What did we do so far?" }];
    const data = /^data:image\/[a-z+]+;base64,(.*)$/s.exec(String(url))?.[1];
    if (type === "file" && data !== undefined) {
      return [{ type: "image", source: { type: "base64", media_type: mime, data } }];
    }
    if (type === "file") draft.leaveOut("file part");
    return [];
  });
}

interface Answer {
  readonly answer: { readonly role: "assistant"; readonly content: readonly object[] };
  /** The message with the results of its calls, if it has calls. */
  readonly results: readonly object[];
}

function answerOf(parts: readonly Fields[]): Answer {
  const content: object[] = [];
  const results: object[] = [];
  for (const part of parts) {
    const { type, text, callID: id, tool: name } = part;
    if (type === "text") content.push({ type, text });
    if (type === "reasoning") content.push({ type: "thinking", thinking: text, signature: signatureOf(part) });
    if (type !== "tool") continue;
    const { input, output, error, status } = Object(part.state) as Fields;
    content.push({ type: "tool_use", id, name, input: Object(input) });
    const isError = status === "error";
    const said = isError ? error : output;
    if (typeof said !== "string") continue;
    results.push({ type: "tool_result", tool_use_id: id, content: said, ...(isError && { is_error: true }) });
  }
  return {
    answer: { role: "assistant", content },
    results: results.length === 0 ? [] : [{ role: "user", content: results }],
  };
}

/** The provider's signature is in the part's metadata, below the name of the provider. */
function signatureOf({ metadata }: Fields): unknown {
  const providers = Object.values(Object(metadata) as Fields).map((each) => Object(each) as Fields);
  return providers.find(({ signature }) => signature !== undefined)?.signature;
}

/** A session of opencode, as `opencode export` writes it. */
export interface OpencodeExport {
  readonly info: Fields;
  readonly messages: readonly OpencodeMessage[];
}

export function readOpencodeFacts({ info, messages }: OpencodeExport): SessionFacts {
  const facts = factsOfInfo(info);
  const draft = createFactsDraft(facts);
  let agent: unknown;
  for (const { info: message, parts } of messages) {
    const { cwd } = Object(message.path) as Fields;
    if (typeof cwd === "string") facts.project ||= cwd;
    if (message.role === "user") {
      draft.input(mainChain, { chars: charsOf(parts), time: timeOfMessage(message, "created") });
      continue;
    }
    // The client asks for a summary with another prompt. That request is not a call of the conversation.
    const isSummary = message.summary === true;
    const by = isSummary ? agent : message.agent;
    if (isSummary) draft.mark(mainChain, "compaction", -1);
    if (by !== (agent ?? by)) draft.mark(mainChain, "shape");
    agent = by;
    addOpencodeAnswer({ message, parts, chain: isSummary ? "summary" : mainChain }, draft);
  }
  return facts;
}

function factsOfInfo({ id, directory, parentID }: Fields): SessionFacts {
  return {
    ...{ ...createFacts("opencode"), session: String(id) },
    ...(typeof directory === "string" && { project: directory }),
    ...(typeof parentID === "string" && { subAgent: "sub-agent" }),
  };
}

interface OpencodeAnswer {
  readonly message: Fields;
  readonly parts: readonly Fields[];
  readonly chain: string;
}

function addOpencodeAnswer({ message, parts, chain }: OpencodeAnswer, draft: FactsDraft): void {
  const record = usageOfMessage(message);
  draft.input(chain, { chars: 0, time: timeOfMessage(message, "created") });
  if (record !== undefined) {
    draft.answer(chain, {
      id: record.id,
      model: record.model,
      time: timeOfMessage(message, "completed"),
      usage: record.usage,
    });
  }
  for (const part of parts) {
    const { input, output, error } = Object(part.state) as Fields;
    const isTool = part.type === "tool";
    draft.input(mainChain, { chars: isTool ? charsOf(input) : charsOf(part) });
    if (!isTool) continue;
    const chars = charsOf(output ?? error);
    draft.input(mainChain, { chars, tool: String(part.tool), file: fileOfInput(input) });
  }
}

function timeOfMessage({ time }: Fields, name: "created" | "completed"): number | undefined {
  return timeOf((Object(time) as Fields)[name]);
}
