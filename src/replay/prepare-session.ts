/** A recorded session made ready: mended where no provider would take it, counted once, cut into calls. Every policy and window
 *  replays the same one. */
import {
  countSystem,
  countTools,
  createMessageLens,
  type FormatName,
  type MessageLens,
  normaliseMessages,
  type Role,
} from "../messages/index.ts";
import type { Counter } from "../tokens/index.ts";
import { createBlockReader, type MessageBlocks } from "./message-blocks.ts";
import type { RecordedSession } from "./sessions/recorded-session.ts";

export interface PreparedSession {
  readonly file: string;
  /** The first words of the first user message, on one line. */
  readonly title: string;
  readonly format: FormatName;
  readonly messages: readonly object[];
  /** Each assistant turn is a call; the number of messages in its request. */
  readonly calls: readonly number[];
  readonly system?: unknown;
  readonly tools?: readonly object[] | undefined;
  /** Of the session's own system text and tools; 0 where it has none. */
  readonly prefixTokens: number;
  /** Tokens of a request that are in no message. */
  readonly frameTokens: number;
  readonly counter: Counter;
  readonly model?: string | undefined;
  blocksOf(message: object): MessageBlocks;
}

export interface PrepareOptions {
  readonly counter: Counter;
  /** The model that is meant: what images cost, how its thinking is bound, its prices. */
  readonly model?: string | undefined;
}

/** Throws `invalid_message` with the path of a message that is malformed. */
export function prepareSession(
  session: RecordedSession,
  { counter, model }: PrepareOptions,
): PreparedSession {
  const { file, system, tools } = session;
  const messages = normaliseMessages(session.messages, { format: session.format });
  // What is encrypted in a recording can be counted by its readable text alone: its size says nothing about tokens.
  const lens = createMessageLens(messages, { counter, model, format: session.format, sealed: "readable" });
  const blocksOf = createBlockReader(messages, lens);
  return {
    file,
    title: titleOf(messages, lens),
    format: lens.format,
    messages,
    calls: callsOf(messages.map((message) => blocksOf(message).role)),
    system,
    tools,
    prefixTokens: countPrefix(session, { counter, model, format: lens.format }),
    frameTokens: lens.requestTokens,
    counter,
    model,
    blocksOf,
  };
}

function callsOf(roles: readonly Role[]): number[] {
  const isCall = (role: Role, index: number): boolean =>
    index > 0 && role === "assistant" && roles[index - 1] !== "assistant";
  return roles.flatMap((role, index) => (isCall(role, index) ? index : []));
}

const titleCharacters = 160;

function titleOf(messages: readonly object[], lens: MessageLens): string {
  for (const [index, message] of messages.entries()) {
    const { role, parts } = lens.read(message, index);
    if (role !== "user") continue;
    const pieces = parts.filter(({ kind }) => kind === "text").flatMap((part) => part.pieces);
    const text = pieces.map((piece) => ("text" in piece ? piece.text : "")).join(" ");
    const words = text
      .slice(0, 10 * titleCharacters)
      .replace(/\s+/g, " ")
      .trim();
    const characters = [...words];
    if (characters.length > titleCharacters) return `${characters.slice(0, titleCharacters - 1).join("")}…`;
    if (words !== "") return words;
  }
  return "";
}

function countPrefix(
  { system, tools = [] }: RecordedSession,
  { counter, model, format }: PrepareOptions & { format: FormatName },
): number {
  return (
    countSystem(system, counter) + (tools.length === 0 ? 0 : countTools(tools, counter, { format, model }))
  );
}
