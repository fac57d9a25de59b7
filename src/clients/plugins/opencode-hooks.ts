/** The hooks of the opencode plugin, which run inside opencode (1.18, 2026-11). A hook that throws loses a tool's result
 *  or ends the run, and one that hangs stops the client. */
import type { Fields } from "../../core/text/index.ts";
import { blockOf, type MessageView, type SentBlocks } from "./client-history.ts";
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

interface AfterTool extends ToolCall {
  readonly args?: unknown;
}

/** A tool's answer: `output` of opencode's own tools, `content` of an MCP server's. */
interface ToolAnswer {
  output?: unknown;
  content?: unknown;
}

type Hook<Input, Output = unknown> = (input: Input, output: Output) => Promise<void>;

export interface OpenCodeHooks {
  readonly "tool.execute.before": Hook<ToolCall, { readonly args?: unknown }>;
  readonly "tool.execute.after": Hook<AfterTool, ToolAnswer>;
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
      const text = textOf(answer);
      if (text === undefined) return;
      const call = { sessionId: sessionID, callId: callID, tool, input: args, text };
      const shorter = await admit(typeof answer.output === "string" ? call : { ...call, shareOfLimit: serverShare });
      if (shorter !== undefined) setText(answer, shorter);
    }),
    "experimental.chat.messages.transform": quietly(async (_input, { messages }) => {
      const last = messages.findLast(({ info }) => info.role === "assistant");
      const user = messages.findLast(({ info }) => info.role === "user");
      const sessionId = user?.info.sessionID;
      if (typeof sessionId !== "string") return;
      endTurn(sessionId);
      const { modelID } = fieldsOf(user?.info.model);
      const limit = limits.get(String(modelID)) ?? {};
      const model = typeof modelID === "string" ? modelID : undefined;
      const sent = await trim({
        ...{ sessionId, messages, view: openCodeView, model },
        ...{ window: positive(limit.input) ?? positive(limit.context), longestAnswer: positive(limit.output) },
        usage: last === undefined ? undefined : usageOf(last.info),
      });
      // A trim must not change which images are old.
      const images = withoutImages(
        messages.flatMap(({ parts }) => parts.filter(hasImages).map(callOf)),
        model,
      );
      const unbound = unboundThinking(messages, images);
      // opencode reads the list that it passed in.
      if (sent !== undefined) messages.splice(0, messages.length, ...sent);
      for (const [index, message] of messages.entries())
        messages[index] = withoutThinking(withoutOldImages(message, images.old), unbound);
    }),
    "experimental.chat.system.transform": quietly(async ({ sessionID }, { system }) => {
      if (trims && sessionID !== undefined) system.push(recallNote);
    }),
    "shell.env": quietly(async ({ sessionID }, { env }) => {
      if (trims && typeof sessionID === "string") env[sessionVariable] = sessionID;
    }),
    "chat.params": quietly(async ({ model }) => {
      const { id, limit } = fieldsOf(model);
      if (typeof id === "string") limits.set(id, fieldsOf(limit));
    }),
    event: quietly(async ({ event: { type, properties } }) => {
      const { sessionID } = fieldsOf(properties);
      if (typeof sessionID === "string" && shortening.has(type)) await forget(sessionID);
    }),
  };
}

/** What a hook throws would reach the model, or end the run. */
function quietly<Input, Output>(hook: Hook<Input, Output>): Hook<Input, Output> {
  return async (input, output) => {
    try {
      await hook(input, output);
    } catch {
      // opencode goes on with what it has.
    }
  };
}

/** Events after which earlier results may not be in the context any more: compaction and undo. */
const shortening: ReadonlySet<unknown> = new Set(["session.compacted", "message.removed", "message.part.removed"]);

/** opencode cuts the answer of an MCP server after our hook, by bytes and by lines (1.18). */
function serverShare(text: string): number {
  return Math.max(Buffer.byteLength(text) / 50_000, text.split("\n").length / 2_000);
}

function textOf({ output, content }: ToolAnswer): string | undefined {
  if (typeof output === "string") return output;
  const [only, ...rest] = Array.isArray(content) ? (content as Fields[]) : [];
  return rest.length === 0 && only?.type === "text" && typeof only.text === "string" ? only.text : undefined;
}

function setText(answer: ToolAnswer, text: string): void {
  if (typeof answer.output === "string") answer.output = text;
  else answer.content = [{ ...fieldsOf((answer.content as unknown[])[0]), text }];
}

function callOf({ callID }: Fields): string {
  return String(callID);
}

function isImage(attachment: unknown): boolean {
  return String(fieldsOf(attachment).mime).startsWith("image/");
}

function hasImages({ type, state }: Fields): boolean {
  const { attachments } = fieldsOf(state);
  return type === "tool" && Array.isArray(attachments) && attachments.some(isImage);
}

function withoutOldImages(message: OpenCodeMessage, old: ReadonlySet<string>): OpenCodeMessage {
  const isOld = (part: Fields): boolean => hasImages(part) && old.has(callOf(part));
  if (!message.parts.some(isOld)) return message;
  const parts = message.parts.map((part) => {
    if (!isOld(part)) return part;
    const state = fieldsOf(part.state);
    const attachments = (state.attachments as unknown[]).filter((each) => !isImage(each));
    return { ...part, state: { ...state, output: `${resultOf(part)}\n${imageNote}`, attachments } };
  });
  return { ...message, parts };
}

/** Returns the thinking that was made with images which are left out now. An answer has its results in it. */
function unboundThinking(messages: readonly OpenCodeMessage[], { old, since }: LeftOutImages): ReadonlySet<Fields> {
  const parts = messages.flatMap((message) => message.parts);
  const first = parts.findIndex((part) => hasImages(part) && old.has(callOf(part)));
  const last = parts.findIndex((part) => hasImages(part) && callOf(part) === since);
  return new Set(first < 0 ? [] : parts.slice(first, last + 1).filter(({ type }) => type === "reasoning"));
}

/** opencode leaves out an answer without parts that a model reads. */
function withoutThinking(message: OpenCodeMessage, unbound: ReadonlySet<Fields>): OpenCodeMessage {
  const parts = message.parts.filter((part) => !unbound.has(part));
  return parts.length === message.parts.length ? message : { ...message, parts };
}

/** opencode counts what came from the cache separately. */
function usageOf({ id, tokens }: Fields): { readonly id: string; readonly tokens: unknown } | undefined {
  const { input, cache } = fieldsOf(tokens);
  const { read, write } = fieldsOf(cache);
  if (typeof id !== "string" || positive(input) === undefined) return undefined;
  return { id, tokens: { input_tokens: input, cache_read_input_tokens: read, cache_creation_input_tokens: write } };
}

function positive(value: unknown): number | undefined {
  return typeof value === "number" && value > 0 ? value : undefined;
}

function fieldsOf(value: unknown): Fields {
  return Object(value) as Fields;
}

/** Shows each answer of opencode's, which holds its calls with their results, as a turn and the message with its
 *  results. Only what a model reads is shown; other parts stay where they are. */
export const openCodeView: MessageView<OpenCodeMessage> = {
  show: (messages, originalOf) =>
    messages.flatMap(({ info, parts }, index) => showMessage(info, parts, { index, originalOf })),
  apply(messages, sent) {
    return messages.flatMap((message, index) => {
      const parts = message.parts.flatMap((part, at) => applyPart(part, `${index}.${at}`, sent));
      if (parts.every((part, at) => part === message.parts[at])) return message;
      return parts.some(isRead) ? { ...message, parts } : [];
    });
  },
};

interface ShowOptions {
  readonly index: number;
  readonly originalOf: (callId: string, text: string) => string;
}

function showMessage({ role }: Fields, parts: readonly Fields[], { index, originalOf }: ShowOptions): object[] {
  const blocks: object[] = [];
  const results: object[] = [];
  for (const [at, part] of parts.entries()) {
    const name = `${index}.${at}`;
    if (part.type !== "tool") blocks.push(...showPart(part, name));
    else {
      const { callID: id, tool, state } = part;
      const { input = {}, attachments } = fieldsOf(state);
      const text = originalOf(String(id), resultOf(part));
      const media = (Array.isArray(attachments) ? attachments : []).map(showMedia);
      const content = media.length === 0 ? text : [{ type: "text", text }, ...media];
      blocks.push(blockOf(`${name} call`, { type: "tool_use", id, name: tool, input }));
      results.push(blockOf(`${name} result`, { type: "tool_result", tool_use_id: id, content }));
    }
  }
  const shown = blocks.length === 0 ? [] : [{ role: role === "assistant" ? role : "user", content: blocks }];
  return results.length === 0 ? shown : [...shown, { role: "user", content: results }];
}

function showPart(part: Fields, name: string): object[] {
  const { type, text, metadata } = part;
  if (type === "text" && typeof text === "string" && part.ignored !== true) return [blockOf(name, { type, text })];
  if (type === "file") return [blockOf(name, showMedia(part))];
  if (type !== "reasoning" || typeof text !== "string") return [];
  const { signature = "" } = fieldsOf(fieldsOf(metadata).anthropic);
  return [blockOf(name, { type: "thinking", thinking: text, signature })];
}

function showMedia(file: unknown): Fields {
  const { mime = "", url = "" } = fieldsOf(file);
  const [, data] = /^data:[^,]*;base64,(.*)$/s.exec(String(url)) ?? [];
  const source = data === undefined ? { type: "url", url } : { type: "base64", media_type: mime, data };
  return { type: String(mime).startsWith("image/") ? "image" : "document", source };
}

function resultOf({ state }: Fields): string {
  const { status, output, error } = fieldsOf(state);
  return String((status === "error" ? error : output) ?? "");
}

function applyPart(part: Fields, name: string, sent: SentBlocks): Fields[] {
  const isShown = part.type === "tool" || showPart(part, name).length > 0;
  if (!isShown) return [part];
  if (part.type === "tool") return applyTool(part, name, sent);
  const block = sent(name);
  if (block === undefined) return [];
  return [block.type === "text" && block.text !== part.text ? { ...part, text: block.text } : part];
}

function applyTool(part: Fields, name: string, sent: SentBlocks): Fields[] {
  const [call, result] = [sent(`${name} call`), sent(`${name} result`)];
  if (call === undefined || result === undefined) return [];
  const state = fieldsOf(part.state);
  const { input = {} } = state;
  // A list is what we showed: the text with its images.
  const text = typeof result.content === "string" ? result.content : resultOf(part);
  const isText = text === resultOf(part);
  if (isText && call.input === input) return [part];
  const edited = state.status === "error" ? { error: text } : { output: text, attachments: [] };
  return [{ ...part, state: { ...state, input: call.input, ...(!isText && edited) } }];
}

function isRead({ type }: Fields): boolean {
  return type === "text" || type === "tool" || type === "file" || type === "reasoning";
}
