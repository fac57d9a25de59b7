/** What is left of each message of a session when it is trimmed in one of three ways. */
import {
  type CountedMessage,
  type CountedPart,
  createMessageLens,
  type MessageLens,
  type PartEdit,
  withFramedResults,
} from "../../../src/core/messages/index.ts";
import type { PreparedSession } from "../../../src/recordings/replay/prepare-session.ts";

export interface TrimmedMessage {
  readonly isAssistant: boolean;
  readonly tokens: number;
  /** Once it is trimmed. */
  readonly leftTokens: number;
  /** Those that nobody can read any more once it is trimmed. */
  readonly lostTokens: number;
  /** Whether a boundary may lie in front of it. */
  readonly isEdge: boolean;
}

/** `clear`: placeholders for results and inputs, no thinking. `clear-text`: for the assistant's text, too. `drop`: whole exchanges
 *  go, a long answer leaves a placeholder. */
export const clearings = ["clear", "clear-text", "drop"] as const;
export type Clearing = (typeof clearings)[number];

export function trimmedMessages(session: PreparedSession, clearing: Clearing): TrimmedMessage[] {
  const { messages, counter, format } = session;
  const lens = createMessageLens(messages, { counter, format, sealed: "readable" });
  let previous: CountedMessage | undefined;
  return messages.map((message, index) => {
    const read = withFramedResults(lens.read(message, index), previous);
    previous = read;
    const isAssistant = read.role === "assistant";
    const isEdge = clearing !== "drop" || isAssistant || index === 0;
    return { isAssistant, isEdge, tokens: read.tokens, ...trim(message, read, { lens, clearing }) };
  });
}

const placeholder: PartEdit = { action: "replace", text: "[trimmed]" };
const nothing: PartEdit = { action: "drop" };

function trim(
  message: object,
  read: CountedMessage,
  { lens, clearing }: { lens: MessageLens; clearing: Clearing },
): Pick<TrimmedMessage, "leftTokens" | "lostTokens"> {
  const hasCalls = read.parts.some(({ kind }) => kind === "tool_call");
  const edits = new Map<number, PartEdit>();
  let lostTokens = 0;
  for (const [index, part] of read.parts.entries()) {
    const edit = clearing === "drop" ? dropped(part, read, hasCalls) : cleared(part, read, clearing === "clear-text");
    if (edit === undefined) continue;
    edits.set(index, edit);
    lostTokens += part.tokens;
  }
  if (edits.size === 0) return { leftTokens: read.tokens, lostTokens: 0 };
  const left = lens.edit(message, edits);
  if (left === undefined) return { leftTokens: 0, lostTokens: read.tokens };
  // Not index 0: to the counter's cache that is the beginning of a conversation.
  return { leftTokens: lens.read(left, 1).tokens, lostTokens };
}

// Below these a placeholder saves too little (tokens, framing included).
const leastTokens = { tool_result: 60, tool_call: 80, text: 60 } as const;
const longAnswerTokens = 300;

function cleared({ kind, tokens }: CountedPart, { role }: CountedMessage, hasText: boolean): PartEdit | undefined {
  if (kind === "thinking") return nothing;
  if (kind === "tool_result" || kind === "tool_call") return tokens >= leastTokens[kind] ? placeholder : undefined;
  return hasText && kind === "text" && role === "assistant" && tokens >= leastTokens.text ? placeholder : undefined;
}

function dropped({ kind, tokens }: CountedPart, { role }: CountedMessage, hasCalls: boolean): PartEdit | undefined {
  if (kind === "tool_result" || kind === "thinking") return nothing;
  if (role !== "assistant") return undefined;
  if (hasCalls) return nothing;
  return kind === "text" && tokens > longAnswerTokens ? placeholder : undefined;
}
