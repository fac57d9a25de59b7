/** The extension of pi, which runs inside pi (0.73, 2026-11). */
import { quoteNotes } from "../../conversation/intake/index.ts";
import type { Fields } from "../../core/text/index.ts";
import { blockOf, type HistoryRequest, type MessageView, type SentBlocks } from "./client-history.ts";
import { type InClient, imageNote, type LeftOutImages, recallNote, sessionVariable } from "./in-client.ts";

/** What we use of pi's `ExtensionAPI`. */
export interface PiApi {
  on(event: string, handler: (event: Fields, context: PiContext) => Promise<object | undefined>): void;
}

export interface PiContext {
  readonly sessionManager: { getSessionId(): string };
  readonly model?: unknown;
}

/** Registers the hooks. If a handler of a result throws, pi reports it, and the result stays as it is. */
export function registerPi(pi: PiApi, plugin: InClient): void {
  let last = "";
  const readSession = ({ sessionManager }: PiContext): string => {
    last = sessionManager.getSessionId();
    return last;
  };
  /** At the end of `pi -p`, pi compacts a session whose context no longer answers. */
  const readSessionOrLast = (context: PiContext): string => {
    try {
      return readSession(context);
    } catch {
      return last;
    }
  };
  pi.on("tool_call", async ({ toolCallId, toolName, input }, context) => {
    // pi does not run the tool if this throws.
    const sessionId = readSessionOrLast(context);
    plugin.begin({ sessionId, callId: String(toolCallId), tool: String(toolName), input });
    return undefined;
  });
  pi.on("tool_result", async ({ toolCallId, toolName, input, content }, context) => {
    const text = readOnlyText(content);
    if (text === undefined) return quoteBlocks(content);
    const call = { sessionId: readSession(context), callId: String(toolCallId), tool: String(toolName), input, text };
    const shorter = await plugin.admit(call);
    return shorter === undefined ? undefined : { content: [{ type: "text", text: shorter }] };
  });
  pi.on("context", async ({ messages }, context) => {
    const list = messages as readonly PiMessage[];
    const results = list.filter(({ role }) => role === "toolResult");
    await plugin.endTurn(
      readSession(context),
      results.map(({ toolCallId }) => String(toolCallId)),
    );
    const { id, contextWindow, maxTokens } = Object(context.model) as Fields;
    const model = typeof id === "string" ? id : undefined;
    const sent = await plugin.trim({
      sessionId: readSession(context),
      messages: list,
      view: piView,
      model,
      window: typeof contextWindow === "number" ? contextWindow : undefined,
      longestAnswer: typeof maxTokens === "number" ? maxTokens : undefined,
      usage: readUsage(list.findLast(({ role }) => role === "assistant")),
    });
    // A trim must not change which images are old.
    const images = plugin.withoutImages(
      list.filter(hasImages).map(({ toolCallId }) => String(toolCallId)),
      model,
    );
    if (sent === undefined && images.old.size === 0) return undefined;
    const unbound = findUnboundThinking(list, images);
    return { messages: (sent ?? list).flatMap((message) => leaveOut(message, images.old, unbound)) };
  });
  if (plugin.trims) {
    // pi has one session at a time, and its shell gets the variables of its process.
    pi.on("before_agent_start", async ({ systemPrompt }, context) => {
      process.env[sessionVariable] = readSession(context);
      return { systemPrompt: `${systemPrompt}\n\n${recallNote}` };
    });
  }
  // After these, earlier results may not be in the context any more.
  for (const event of ["session_compact", "session_tree"]) {
    pi.on(event, async (_event, context) => {
      await plugin.forget(readSessionOrLast(context));
      return undefined;
    });
  }
}

function readOnlyText(content: unknown): string | undefined {
  const [only, ...rest] = Array.isArray(content) ? (content as Fields[]) : [];
  return rest.length === 0 && only?.type === "text" && typeof only.text === "string" ? only.text : undefined;
}

/** Several blocks are not shortened. */
function quoteBlocks(content: unknown): { readonly content: readonly unknown[] } | undefined {
  if (!Array.isArray(content)) return undefined;
  const quoted = (content as Fields[]).map((block) => {
    const text = typeof block?.text === "string" ? quoteNotes(block.text, undefined) : undefined;
    return text === undefined || text === block.text ? block : { ...block, text };
  });
  return quoted.some((block, index) => block !== content[index]) ? { content: quoted } : undefined;
}

function readUsage(message: PiMessage | undefined): HistoryRequest<object>["usage"] {
  const { input, cacheRead, cacheWrite } = Object(message?.usage) as Fields;
  if (typeof input !== "number" || message === undefined) return undefined;
  const tokens = { input_tokens: input, cache_read_input_tokens: cacheRead, cache_creation_input_tokens: cacheWrite };
  return { id: String(message.timestamp), tokens };
}

function isImage({ type }: Fields): boolean {
  return type === "image";
}

function hasImages({ role, content }: PiMessage): boolean {
  return role === "toolResult" && listBlocks(content).some(isImage);
}

/** Returns the thinking that was made with images which are left out now. */
function findUnboundThinking(messages: readonly PiMessage[], { old, since }: LeftOutImages): ReadonlySet<Fields> {
  const first = messages.findIndex((message) => hasImages(message) && old.has(String(message.toolCallId)));
  const last = messages.findIndex((message) => hasImages(message) && String(message.toolCallId) === since);
  const answers = first < 0 ? [] : messages.slice(first, last + 1).filter(({ role }) => role === "assistant");
  return new Set(answers.flatMap(({ content }) => listBlocks(content).filter(({ type }) => type === "thinking")));
}

/** Returns the message without old images and unbound thinking, or nothing if nothing is left of it. */
function leaveOut(message: PiMessage, old: ReadonlySet<string>, unbound: ReadonlySet<Fields>): PiMessage[] {
  const blocks = listBlocks(message.content);
  if (hasImages(message) && old.has(String(message.toolCallId))) {
    const note = { type: "text", text: imageNote };
    return [{ ...message, content: blocks.map((block) => (isImage(block) ? note : block)) }];
  }
  const left = blocks.filter((block) => !unbound.has(block));
  if (left.length === blocks.length) return [message];
  return left.length === 0 ? [] : [{ ...message, content: left }];
}

/** A message of pi: `user`, `assistant`, `toolResult`, or one of its own kinds. */
export interface PiMessage extends Fields {
  readonly role: string;
}

/** Shows pi's messages, which are much like Anthropic's. Kinds of pi's own are shown as text and never change. */
export const piView: MessageView<PiMessage> = {
  show: (messages, findText) =>
    messages.map((message, index) => {
      const { role, content } = message;
      if (role === "toolResult") return showResult(message, index, findText);
      if (role === "assistant" && Array.isArray(content)) {
        return { role, content: content.map((block, at) => showBlock(block, `${index}.${at}`)) };
      }
      const blocks =
        role === "user" && Array.isArray(content) ? content : [{ type: "text", text: readOwnText(message) }];
      return { role: "user", content: blocks.map((block, at) => showBlock(block, `${index}.${at}`)) };
    }),
  apply: (messages, sent) => messages.flatMap((message, index) => applyMessage(message, index, sent)),
};

function showResult(
  { toolCallId, content }: PiMessage,
  index: number,
  findText: (callId: string, text: string) => string,
): object {
  const text = readOnlyText(content);
  const shown = text === undefined ? listBlocks(content).map(showMedia) : findText(String(toolCallId), text);
  const block = { type: "tool_result", tool_use_id: toolCallId, content: shown };
  return { role: "user", content: [blockOf(String(index), block)] };
}

function showBlock(block: Fields, name: string): object {
  const { type, id, name: tool, arguments: input = {}, thinking, thinkingSignature: signature = "" } = block;
  if (type === "toolCall") return blockOf(name, { type: "tool_use", id, name: tool, input });
  if (type === "thinking") return blockOf(name, { type, thinking, signature });
  return blockOf(name, showMedia(block));
}

function showMedia(block: Fields): Fields {
  const { type, data, mimeType } = block;
  return type === "image" ? { type, source: { type: "base64", media_type: mimeType, data } } : block;
}

/** What a model reads of a message of pi's own kinds. */
function readOwnText({ content, command, output, summary }: PiMessage): string {
  if (typeof content === "string") return content;
  const texts = [...listBlocks(content).map(({ text }) => text), command, output, summary];
  return texts.filter((text) => typeof text === "string").join("\n");
}

function listBlocks(content: unknown): readonly Fields[] {
  return Array.isArray(content) ? content : [];
}

function applyMessage(message: PiMessage, index: number, sent: SentBlocks): PiMessage[] {
  const { role, content } = message;
  if (role === "toolResult") {
    const block = sent(String(index));
    if (block === undefined) return [];
    const isSame = typeof block.content !== "string" || block.content === readOnlyText(content);
    return [isSame ? message : { ...message, content: [{ type: "text", text: block.content }] }];
  }
  if (role !== "assistant") return [message];
  const before = listBlocks(content);
  const blocks = before.flatMap((block, at) => {
    const now = sent(`${index}.${at}`);
    if (now === undefined) return [];
    if (block.type === "toolCall" && now.input !== block.arguments) return [{ ...block, arguments: now.input }];
    return [block.type === "text" && now.text !== block.text ? { ...block, text: now.text } : block];
  });
  if (blocks.length === before.length && blocks.every((block, at) => block === before[at])) return [message];
  return blocks.length === 0 ? [] : [{ ...message, content: blocks }];
}
