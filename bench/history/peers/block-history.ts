/** A session cut into blocks that a peer's messages are made of, and back: what is left of them as messages in Anthropic's shape. */
import type { Sent } from "../../../src/recordings/replay/replay-session.ts";
import { type BenchSession, tokensOf } from "../bench-session.ts";

export interface Block {
  /** Index of its message in the session, and its own in the message. */
  readonly message: number;
  readonly index: number;
  readonly role: "assistant" | "user";
  readonly value: ContentBlock;
  readonly tokens: number;
  /** Its content was taken away. */
  readonly isCleared?: boolean;
}

export interface ContentBlock {
  readonly type: string;
  readonly text?: string;
  readonly thinking?: string;
  readonly id?: string;
  readonly name?: string;
  readonly input?: unknown;
  readonly tool_use_id?: string;
  readonly content?: unknown;
}

export interface BlockHistory {
  /** The blocks of each message. */
  readonly messages: readonly (readonly Block[])[];
  /** The tool that a result is of. */
  toolNameOf(result: Block): string;
  /** A result with nothing but a placeholder. */
  clear(result: Block, placeholder: string): Block;
  /** What is sent when these blocks are left of the first `length` messages. */
  sent(blocks: readonly Block[], length: number): Sent;
}

export function createBlockHistory(session: BenchSession): BlockHistory {
  const { prepared, sizes } = session;
  const messages = prepared.messages.map((message, index) => blocksOf(message as Message, { index, session }));
  const names = new Map<unknown, string>();
  for (const { value } of messages.flat()) if (value.name !== undefined) names.set(value.id, value.name);
  const rebuild = createRebuilder(session, messages);
  const cleared = new Map<ContentBlock, Block>();
  return {
    messages,
    toolNameOf: ({ value }) => names.get(value.tool_use_id) ?? "tool",
    clear(result, placeholder) {
      const known = cleared.get(result.value);
      if (known !== undefined) return known;
      const value = { ...result.value, content: placeholder };
      const tokens = tokensOf(prepared, { role: "user", content: [value] });
      const block = { ...result, value, tokens, isCleared: true };
      cleared.set(result.value, block);
      return block;
    },
    sent(blocks, length) {
      const kept = blocks.reduce((sum, { tokens, isCleared }) => sum + (isCleared ? 0 : tokens), 0);
      const keptShare = kept / (sizes[length] ?? kept);
      return { messages: rebuild(blocks), isEpoch: false, keptShare, breakpoints: [] };
    },
  };
}

/** All that a block says. */
export function textOf({ value }: Block): string {
  const { text, thinking, input, content } = value;
  if (typeof content === "string") return content;
  return text ?? thinking ?? JSON.stringify(input ?? content ?? "");
}

interface Message {
  readonly role: string;
  readonly content: string | readonly ContentBlock[];
}

function blocksOf(
  { role, content }: Message,
  { index: message, session }: { index: number; session: BenchSession },
): Block[] {
  const { prepared } = session;
  const { blocks } = prepared.blocksOf(prepared.messages[message]!);
  const values = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return values.map((value, index) => {
    // What a recording has from the system stands among the messages, as the person's text does.
    const own = role === "assistant" ? "assistant" : "user";
    return { message, index, role: own, value, tokens: blocks[index]?.tokens ?? 0 };
  });
}

/** Equal messages are the same objects on every call, the session's own where nothing is missing: they are looked at once. */
function createRebuilder(
  { prepared }: BenchSession,
  all: readonly (readonly Block[])[],
): (blocks: readonly Block[]) => object[] {
  const known = new Map<string, object>();
  const build = (blocks: readonly Block[]): object => {
    const { message } = blocks[0]!;
    const original = prepared.messages[message]!;
    const isWhole = blocks.length === all[message]?.length && !blocks.some(({ isCleared }) => isCleared);
    if (isWhole) return original;
    const key = `${message}: ${blocks.map(({ index, isCleared }) => (isCleared ? -1 - index : index)).join()}`;
    const built = known.get(key) ?? { ...original, content: blocks.map(({ value }) => value) };
    known.set(key, built);
    return built;
  };
  return (blocks) => {
    const messages: object[] = [];
    for (let from = 0, to = 0; from < blocks.length; from = to) {
      while (to < blocks.length && blocks[to]!.message === blocks[from]!.message) to++;
      messages.push(build(blocks.slice(from, to)));
    }
    return messages;
  };
}
