/** The hooks of the opencode plugin, which run inside opencode (1.18, 2026-11). A hook that throws loses a tool's result
 *  or ends the run, and one that hangs stops the client. */
import type { Fields } from "../../core/text/index.ts";
import { blockOf, type HistoryRequest, type MessageView, type SentBlocks } from "./client-history.ts";
import { type InClient, imageNote, type LeftOutImages, recallNote, sessionVariable } from "./in-client.ts";

/** A message as opencode stores it. */
export interface OpenCodeMessage {
  readonly info: Fields;
  readonly parts: readonly Fields[];
}

interface ToolCall {
  readonly tool: string;
  readonly sessionID: string;
  readonly callID: string;
}

type Hook<Input, Output = unknown> = (input: Input, output: Output) => Promise<void>;

export interface OpenCodeHooks {
  readonly "tool.execute.before": Hook<ToolCall, { readonly args?: unknown }>;
  /** A tool's answer: `output` of opencode's own tools, `content` of an MCP server's. */
  readonly "tool.execute.after": Hook<ToolCall & { readonly args?: unknown }, { output?: unknown; content?: unknown }>;
  readonly "experimental.chat.messages.transform": Hook<unknown, { messages: OpenCodeMessage[] }>;
  readonly "experimental.chat.system.transform": Hook<Fields, { system: string[] }>;
  readonly "shell.env": Hook<Fields, { env: Record<string, string> }>;
  readonly "chat.params": Hook<Fields>;
  readonly event: Hook<{ readonly event: Fields }>;
}

export function openCodeHooks({ begin, admit, endTurn, trim, forget, trims, withoutImages }: InClient): OpenCodeHooks {
  /** What each model accepts, as opencode's own list has it. */
  const limits = new Map<string, Fields>();
  return {
    "tool.execute.before": quietly(async ({ sessionID, callID, tool }, { args }) => {
      begin({ sessionId: sessionID, callId: callID, tool, input: args });
    }),
    "tool.execute.after": quietly(async ({ sessionID, callID, tool, args }, answer) => {
      const { output, content } = answer;
      const call = { sessionId: sessionID, callId: callID, tool, input: args };
      if (typeof output === "string") {
        answer.output = (await admit({ ...call, text: output })) ?? output;
        return;
      }
      const [only, ...rest] = Array.isArray(content) ? (content as Fields[]) : [];
      if (rest.length > 0 || only?.type !== "text" || typeof only.text !== "string") return;
      const text = await admit({ ...call, text: only.text, shareOfLimit: measureServerShare });
      if (text !== undefined) answer.content = [{ ...only, text }];
    }),
    "experimental.chat.messages.transform": quietly(async (_input, { messages }) => {
      const last = messages.findLast(({ info }) => info.role === "assistant");
      const user = messages.findLast(({ info }) => info.role === "user");
      const sessionId = user?.info.sessionID;
      if (typeof sessionId !== "string") return;
      await endTurn(sessionId, listResults(messages));
      const { modelID } = asFields(user?.info.model);
      const limit = limits.get(String(modelID)) ?? {};
      const model = typeof modelID === "string" ? modelID : undefined;
      const sent = await trim({
        sessionId,
        messages,
        view: openCodeView,
        model,
        window: readPositive(limit.input) ?? readPositive(limit.context),
        longestAnswer: readPositive(limit.output),
        usage: last && readUsage(last.info),
      });
      // A trim must not change which images are old.
      const parts = messages.flatMap((message) => message.parts);
      const images = withoutImages(
        parts.filter(hasImages).map(({ callID }) => String(callID)),
        model,
      );
      const unbound = findUnboundThinking(parts, images);
      // opencode reads the list that it passed in.
      if (sent !== undefined) messages.splice(0, messages.length, ...sent);
      for (const [index, message] of messages.entries()) {
        // opencode leaves out an answer without parts that a model reads.
        const kept = message.parts.filter((part) => !unbound.has(part)).map((part) => leaveOutImages(part, images.old));
        const isSame = kept.length === message.parts.length && kept.every((part, at) => part === message.parts[at]);
        if (!isSame) messages[index] = { ...message, parts: kept };
      }
    }),
    "experimental.chat.system.transform": quietly(async ({ sessionID }, { system }) => {
      if (trims && sessionID !== undefined) system.push(recallNote);
    }),
    "shell.env": quietly(async ({ sessionID }, { env }) => {
      if (trims && typeof sessionID === "string") env[sessionVariable] = sessionID;
    }),
    "chat.params": quietly(async ({ model }) => {
      const { id, limit } = asFields(model);
      if (typeof id === "string") limits.set(id, asFields(limit));
    }),
    event: quietly(async ({ event: { type, properties } }) => {
      const { sessionID } = asFields(properties);
      // After these, earlier results may not be in the context any more: compaction and undo.
      const isForgetting = ["session.compacted", "message.removed", "message.part.removed"].includes(String(type));
      // opencode gives its own number to the servers that it starts, and they name their account after it.
      const account = type === "session.compacted" ? `opencode-${process.pid}` : undefined;
      if (typeof sessionID === "string" && isForgetting) await forget(sessionID, account);
    }),
  };
}

/** Swallows errors of a hook, which would reach the model or end the run. */
function quietly<Input, Output>(hook: Hook<Input, Output>): Hook<Input, Output> {
  return async (input, output) => {
    try {
      await hook(input, output);
    } catch {
      // opencode goes on with what it has.
    }
  };
}

/** opencode cuts the answer of an MCP server after our hook, by bytes and by lines (1.18). */
function measureServerShare(text: string): number {
  return Math.max(Buffer.byteLength(text) / 50_000, text.split("\n").length / 2_000);
}

function isImage(attachment: unknown): boolean {
  return String(asFields(attachment).mime).startsWith("image/");
}

function hasImages({ type, state }: Fields): boolean {
  const { attachments } = asFields(state);
  return type === "tool" && Array.isArray(attachments) && attachments.some(isImage);
}

function leaveOutImages(part: Fields, old: ReadonlySet<string>): Fields {
  if (!hasImages(part) || !old.has(String(part.callID))) return part;
  const state = asFields(part.state);
  const attachments = (state.attachments as unknown[]).filter((each) => !isImage(each));
  return { ...part, state: { ...state, output: `${readResult(part)}\n${imageNote}`, attachments } };
}

/** Returns the thinking that was made with images which are left out now. An answer contains its results. */
function findUnboundThinking(parts: readonly Fields[], { old, since }: LeftOutImages): ReadonlySet<Fields> {
  const first = parts.findIndex((part) => hasImages(part) && old.has(String(part.callID)));
  const last = parts.findIndex((part) => hasImages(part) && String(part.callID) === since);
  return new Set(first < 0 ? [] : parts.slice(first, last + 1).filter(({ type }) => type === "reasoning"));
}

/** opencode counts what came from the cache separately. */
function readUsage({ id, tokens }: Fields): HistoryRequest<object>["usage"] {
  const { input, cache } = asFields(tokens);
  const { read, write } = asFields(cache);
  if (typeof id !== "string" || readPositive(input) === undefined) return undefined;
  return { id, tokens: { input_tokens: input, cache_read_input_tokens: read, cache_creation_input_tokens: write } };
}

/** Returns the calls whose results a model reads. opencode clears old ones if its setting compaction.prune says so. */
function listResults(messages: readonly OpenCodeMessage[]): string[] {
  const tools = messages.flatMap(({ parts }) => parts.filter(({ type }) => type === "tool"));
  const sent = tools.filter(({ state }) => asFields(asFields(state).time).compacted === undefined);
  return sent.map(({ callID }) => String(callID));
}

function readPositive(value: unknown): number | undefined {
  return typeof value === "number" && value > 0 ? value : undefined;
}

function asFields(value: unknown): Fields {
  return Object(value) as Fields;
}

/** Shows opencode's messages as Anthropic's. An answer of opencode contains its calls and their results; it becomes a turn
 *  with the calls, and a message with the results. Parts that a model does not read are not shown, and stay. */
export const openCodeView: MessageView<OpenCodeMessage> = {
  show: (messages, findText) =>
    messages.flatMap(({ info: { role }, parts }, index) => {
      const blocks = parts.flatMap((part, at) => showPart(part, `${index}.${at}`));
      const results = parts.flatMap((part, at) => showResult(part, `${index}.${at}`, findText));
      const shown = blocks.length === 0 ? [] : [{ role: role === "assistant" ? role : "user", content: blocks }];
      return results.length === 0 ? shown : [...shown, { role: "user", content: results }];
    }),
  apply(messages, sent) {
    return messages.flatMap((message, index) => {
      const parts = message.parts.flatMap((part, at) => applyPart(part, `${index}.${at}`, sent));
      if (parts.every((part, at) => part === message.parts[at])) return message;
      const isRead = parts.some(({ type }) => ["text", "tool", "file", "reasoning"].includes(String(type)));
      return isRead ? { ...message, parts } : [];
    });
  },
};

/** Returns what a model reads of a part, without the result of a call. */
function showPart(part: Fields, name: string): object[] {
  const { type, text, metadata } = part;
  if (type === "tool") {
    const { input = {} } = asFields(part.state);
    return [blockOf(`${name} call`, { type: "tool_use", id: part.callID, name: part.tool, input })];
  }
  if (type === "text" && typeof text === "string" && part.ignored !== true) return [blockOf(name, { type, text })];
  if (type === "file") return [blockOf(name, showMedia(part))];
  if (type !== "reasoning" || typeof text !== "string") return [];
  const { signature = "" } = asFields(asFields(metadata).anthropic);
  return [blockOf(name, { type: "thinking", thinking: text, signature })];
}

function showResult(part: Fields, name: string, findText: (callId: string, text: string) => string): object[] {
  if (part.type !== "tool") return [];
  const { attachments } = asFields(part.state);
  const text = findText(String(part.callID), readResult(part));
  const media = (Array.isArray(attachments) ? attachments : []).map(showMedia);
  const content = media.length === 0 ? text : [{ type: "text", text }, ...media];
  return [blockOf(`${name} result`, { type: "tool_result", tool_use_id: part.callID, content })];
}

function showMedia(file: unknown): Fields {
  const { mime = "", url = "" } = asFields(file);
  const [, data] = /^data:[^,]*;base64,(.*)$/s.exec(String(url)) ?? [];
  const source = data === undefined ? { type: "url", url } : { type: "base64", media_type: mime, data };
  return { type: String(mime).startsWith("image/") ? "image" : "document", source };
}

function readResult({ state }: Fields): string {
  const { status, output, error } = asFields(state);
  return String((status === "error" ? error : output) ?? "");
}

function applyPart(part: Fields, name: string, sent: SentBlocks): Fields[] {
  if (part.type === "tool") return applyTool(part, name, sent);
  if (showPart(part, name).length === 0) return [part];
  const block = sent(name);
  if (block === undefined) return [];
  return [block.type === "text" && block.text !== part.text ? { ...part, text: block.text } : part];
}

function applyTool(part: Fields, name: string, sent: SentBlocks): Fields[] {
  const [call, result] = [sent(`${name} call`), sent(`${name} result`)];
  if (call === undefined || result === undefined) return [];
  const state = asFields(part.state);
  const { input = {} } = state;
  // A list is what we showed: the text with its images.
  const text = typeof result.content === "string" ? result.content : readResult(part);
  const isText = text === readResult(part);
  if (isText && call.input === input) return [part];
  const edited = state.status === "error" ? { error: text } : { output: text, attachments: [] };
  return [{ ...part, state: { ...state, input: call.input, ...(!isText && edited) } }];
}
