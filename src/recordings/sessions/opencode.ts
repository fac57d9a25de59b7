/** Reads sessions of opencode, as `opencode export` writes them: `{ info, messages: [{ info, parts }] }`. Its database
 *  has the same messages and parts. Messages are converted to Anthropic's format. */

import type { Fields } from "../../core/text/index.ts";
import { readTime, type SessionDraft } from "./recorded-session.ts";
import { type UsageRecord, usageApart } from "./recorded-usage.ts";
import {
  countChars,
  createFacts,
  createFactsDraft,
  type FactsDraft,
  findFile,
  mainChain,
  type SessionFacts,
} from "./session-facts.ts";

/** A session of opencode, as `opencode export` writes it. */
export interface OpencodeExport {
  readonly info: Fields;
  readonly messages: readonly OpencodeMessage[];
}

interface OpencodeMessage {
  readonly info: Fields;
  readonly parts: readonly Fields[];
}

/** Whether a JSON value is an exported session. */
export function isOpencodeExport(value: unknown): value is OpencodeExport {
  const { info, messages } = Object(value) as Fields;
  if (!Array.isArray(messages) || typeof info !== "object") return false;
  return messages.every((message) => {
    const { info: own, parts } = Object(message) as Fields;
    return typeof own === "object" && own !== null && Array.isArray(parts);
  });
}

/** Returns the facts of a session. Adds its requests to `requests`. */
export function readOpencode({ info, messages }: OpencodeExport, requests?: SessionDraft): SessionFacts {
  const { id, directory, parentID } = info;
  const draft = createFactsDraft({
    ...createFacts("opencode"),
    session: String(id),
    ...(typeof directory === "string" && { project: directory }),
    ...(typeof parentID === "string" && { subAgent: "sub-agent" }),
  });
  const history = requests && createHistory(requests);
  let agent: unknown;
  for (const message of messages) {
    const { role, path, time, summary } = message.info;
    const usage = readUsage(message.info);
    requests?.report(usage);
    history?.add(message);
    const { cwd } = Object(path) as Fields;
    if (typeof cwd === "string") draft.facts.project ||= cwd;
    if (role === "user") {
      const { created } = Object(time) as Fields;
      draft.input(mainChain, { chars: countChars(message.parts), time: readTime(created) });
      continue;
    }
    const by = summary === true ? agent : message.info.agent;
    if (by !== (agent ?? by)) draft.mark(mainChain, "shape");
    agent = by;
    addAnswer(message, usage, draft);
  }
  return draft.facts;
}

/** A fork copies messages with new ids and the same times. */
function createId({ id, time }: Fields): string {
  const { created, completed } = Object(time) as Fields;
  return typeof completed === "number" ? `${created}-${completed}` : String(id);
}

/** Returns what a message of opencode reports about its tokens. */
function readUsage(info: Fields): UsageRecord | undefined {
  const { tokens, modelID: model, time } = info;
  if (typeof tokens !== "object" || tokens === null) return undefined;
  const { input, output, reasoning, cache } = tokens as Fields;
  const { read, write } = Object(cache) as Fields;
  return {
    id: createId(info),
    ...(typeof model === "string" && { model }),
    time: readTime((Object(time) as Fields).created),
    usage: usageApart({ input, read, write, output: Number(output ?? 0) + Number(reasoning ?? 0) }),
  };
}

/** Finds the facts of an answer. */
function addAnswer({ info, parts }: OpencodeMessage, usage: UsageRecord | undefined, draft: FactsDraft): void {
  const { created, completed } = Object(info.time) as Fields;
  // The client asks for a summary with another prompt. That request is not a call of the conversation.
  const chain = info.summary === true ? "summary" : mainChain;
  if (info.summary === true) draft.mark(mainChain, "compaction", -1);
  draft.input(chain, { chars: 0, time: readTime(created) });
  if (usage !== undefined) draft.answer(chain, { ...usage, time: readTime(completed) });
  for (const part of parts) {
    const { input, output, error } = Object(part.state) as Fields;
    const isTool = part.type === "tool";
    draft.input(mainChain, { chars: isTool ? countChars(input) : countChars(part) });
    if (!isTool) continue;
    draft.input(mainChain, { chars: countChars(output ?? error), tool: String(part.tool), file: findFile(input) });
  }
}

/** Each assistant message answers one request, except for the summary of a compaction: the client asks for it with the
 *  conversation as one text. The next request starts with the user message that asked for it, the summary, and the last
 *  messages before it that the program kept. */
function createHistory(requests: SessionDraft): { add(message: OpencodeMessage): void } {
  let history: object[] = [];
  /** The first message of the history for each id. */
  const firsts = new Map<unknown, object>();
  let keptFrom: unknown;
  let isGrowing = false;
  return {
    add({ info, parts }) {
      if (info.role === "user") {
        const asked = { role: "user", content: convertPrompt(parts, requests) };
        history.push(asked);
        firsts.set(info.id, asked);
        keptFrom = parts.find(({ type }) => type === "compaction")?.tail_start_id;
        return;
      }
      const { content, results } = convertAnswer(parts);
      // The program does not send an answer that failed before it said anything.
      if (content.length === 0) return;
      const answer = { role: "assistant", content };
      firsts.set(info.id, answer);
      if (info.summary === true) {
        requests.count("compaction");
        const first = history.indexOf(firsts.get(keptFrom) as object);
        isGrowing = false;
        history = [...history.slice(-1), answer, ...(first < 0 ? [] : history.slice(first, -1))];
        return;
      }
      const { created, completed } = Object(info.time) as Fields;
      requests.request(history, { known: isGrowing ? requests.length : 0, time: readTime(created) });
      isGrowing = true;
      requests.add(answer, { time: readTime(completed), answerId: createId(info) });
      history.push(answer);
      if (results.length > 0) history.push({ role: "user", content: results });
    },
  };
}

function convertPrompt(parts: readonly Fields[], requests: SessionDraft): readonly object[] {
  return parts.flatMap(({ type, text, ignored, mime, url }): object[] => {
    if (type === "text" && ignored !== true) return [{ type, text }];
    if (type === "compaction") return [{ type: "text", text: "What did we do so far?" }];
    const data = /^data:image\/[a-z+]+;base64,(.*)$/s.exec(String(url))?.[1];
    if (type === "file" && data !== undefined) {
      return [{ type: "image", source: { type: "base64", media_type: mime, data } }];
    }
    if (type === "file") requests.leaveOut("file part");
    return [];
  });
}

/** Returns the blocks of an answer, and the results of its calls. */
function convertAnswer(parts: readonly Fields[]): { content: readonly object[]; results: readonly object[] } {
  const content: object[] = [];
  const results: object[] = [];
  for (const { type, text, callID: id, tool: name, state, metadata } of parts) {
    if (type === "text") content.push({ type, text });
    if (type === "reasoning") {
      // The provider's signature is in the part's metadata, below the name of the provider.
      const providers = Object.values(Object(metadata) as Fields).map((each) => Object(each) as Fields);
      const signature = providers.find((provider) => provider.signature !== undefined)?.signature;
      content.push({ type: "thinking", thinking: text, signature });
    }
    if (type !== "tool") continue;
    const { input, output, error, status } = Object(state) as Fields;
    content.push({ type: "tool_use", id, name, input: Object(input) });
    const isError = status === "error";
    const result = isError ? error : output;
    if (typeof result !== "string") continue;
    results.push({ type: "tool_result", tool_use_id: id, content: result, ...(isError && { is_error: true }) });
  }
  return { content, results };
}
