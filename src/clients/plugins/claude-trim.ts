/** Trims the requests of Claude Code. The client's module sends each request here before it goes to the model. */
import { findTrimmed, listHistories } from "../../conversation/history/index.ts";
import type { AdmittedResult, Intake } from "../../conversation/intake/index.ts";
import type { Fields } from "../../core/text/index.ts";
import type { PluginContext } from "./admit-results.ts";
import {
  blockOf,
  type ClientHistory,
  createClientHistory,
  type MessageView,
  type TrimSizes,
} from "./client-history.ts";
import type { ClientCall } from "./in-client.ts";
import type { PluginServer } from "./plugin.ts";
import { agentPrefix, historyName } from "./plugin-sessions.ts";

export interface ClaudeTrim {
  /** Takes the body of a request. Returns the messages to send, with an index into the body's messages in place of each
   *  message that stays. Returns undefined if all stay. */
  trim(context: PluginContext, body: string): Promise<readonly (object | number)[] | undefined>;
  /** Returns what was trimmed in one of the sessions. */
  recall(id: string, sessions: Iterable<string>): Promise<string | undefined>;
  /** Remembers which results an admitted one refers to. */
  note(context: PluginContext, call: Omit<ClientCall, "sessionId" | "text">, admitted: AdmittedResult): Promise<void>;
}

/** Returns undefined if the plugin does not trim. */
export function createClaudeTrim({
  server,
  forget,
  onTrim,
}: {
  readonly server: PluginServer;
  onTrim(context: PluginContext, sizes: TrimSizes): void;
  forget(context: PluginContext, isKept: Parameters<Intake["forget"]>[0]): Promise<void>;
}): ClaudeTrim | undefined {
  const { trim } = server.settings;
  if (trim === undefined) return undefined;
  const histories = new Map<string, Promise<ClientHistory>>();
  const openHistory = (context: PluginContext): Promise<ClientHistory> => {
    const { sessionId, agentId } = context;
    const name = historyName(context);
    const intake = { forget: (isKept: Parameters<Intake["forget"]>[0]) => forget(context, isKept) };
    const open = async () => createClientHistory({ store: await server.store(), sessionId, agentId, intake, trim });
    const known = histories.get(name) ?? open();
    histories.set(name, known);
    known.catch(() => histories.delete(name));
    return known;
  };
  return {
    async trim(context, body) {
      const { messages, system, tools, model, max_tokens: longestAnswer } = JSON.parse(body) as ClaudeRequest;
      // Requests for titles and topics are not turns of the conversation.
      if (!Array.isArray(messages) || !Array.isArray(tools) || tools.length === 0) return undefined;
      const history = await openHistory(context);
      return history.reduce<object>({
        sessionId: context.sessionId,
        messages,
        view: createView(),
        model,
        // Without a beta for more, Claude Code works with this window, whatever the model accepts (2.1.325).
        window: 200_000,
        longestAnswer,
        onTrim: (sizes) => onTrim(context, sizes),
        frame: { system, tools },
      }) as Promise<readonly (object | number)[] | undefined>;
    },
    async recall(id, sessions) {
      const store = await server.store();
      for (const sessionId of sessions) {
        for (const name of [sessionId, ...(await listHistories(store, { prefix: agentPrefix(sessionId) }))]) {
          const found = await findTrimmed(store, id, name);
          if (found !== undefined) return found.text;
        }
      }
      return undefined;
    },
    async note(context, call, admitted) {
      await (await openHistory(context)).noteResult({ ...call, sessionId: context.sessionId, text: "" }, admitted);
    },
  };
}

interface ClaudeRequest {
  readonly messages?: readonly Fields[];
  readonly system?: unknown;
  readonly tools?: readonly object[];
  readonly model?: string;
  readonly max_tokens?: number;
}

/** The messages are Anthropic's already. What was trimmed stays as the trimmer wrote it. */
function createView(): MessageView<object> {
  const indexes = new Map<object, number>();
  return {
    show: (messages, findText) =>
      messages.map((message, index) => {
        const { content } = message as Fields;
        if (!Array.isArray(content)) {
          indexes.set(message, index);
          return message;
        }
        const blocks = (content as Fields[]).map((block) => restoreText(block, findText));
        const shown = { ...message, content: blocks.map((block, at) => blockOf(`${index}.${at}`, block)) };
        if (blocks.every((block, at) => block === content[at])) indexes.set(shown, index);
        return shown;
      }),
    // The client's module knows its own messages.
    apply: (_messages, _sent, reduced) => reduced.map((message) => (indexes.get(message) ?? message) as object),
  };
}

/** Only results that are one text are ever shortened. */
function restoreText(block: Fields, findText: (callId: string, text: string) => string): Fields {
  const { type, tool_use_id: callId, content } = block;
  if (type !== "tool_result") return block;
  const [only, ...rest] =
    typeof content === "string" ? [{ type: "text", text: content }] : ((content ?? []) as Fields[]);
  if (only?.type !== "text" || typeof only.text !== "string" || rest.length > 0) return block;
  const text = findText(String(callId), only.text);
  if (text === only.text) return block;
  return { ...block, content: typeof content === "string" ? text : [{ ...only, text }] };
}
