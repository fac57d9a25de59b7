/** LangChain's `trimMessages` and the edit behind `contextEditingMiddleware`. */
import type { Counter } from "../../../src/core/tokens/index.ts";
import { type Block, type BlockHistory, createBlockHistory, textOf } from "./block-history.ts";
import type { Peer } from "./peer.ts";

/** What is used of `@langchain/core/messages` and `langchain`. */
export interface LangChain {
  readonly AIMessage: new (fields: object) => LangChainMessage;
  readonly HumanMessage: new (fields: object) => LangChainMessage;
  readonly ToolMessage: new (fields: object) => LangChainMessage;
  trimMessages(messages: LangChainMessage[], options: object): Promise<LangChainMessage[]>;
  readonly ClearToolUsesEdit: new (options: object) => ClearToolUsesEdit;
}

interface LangChainMessage {
  readonly id?: string;
  readonly tool_call_id?: string;
}

interface ClearToolUsesEdit {
  /** Works on the list itself. */
  apply(request: { messages: LangChainMessage[]; countTokens: CountTokens }): Promise<void>;
}

type CountTokens = (messages: readonly LangChainMessage[]) => number;

/** Both act at the same share of the budget, the RFC's. */
const threshold = 0.8;

export function trimMessagesPeer(version: string, langChain: LangChain): Peer {
  return {
    name: `@langchain/core ${version}: trimMessages`,
    isRecounting: true,
    open(session, { budget, stopwatch, counter }) {
      const history = createBlockHistory(session);
      const { upTo, blocksOf, countTokens } = convert(history, langChain, counter);
      const options = {
        maxTokens: Math.floor(threshold * budget),
        strategy: "last",
        startOn: "human",
        includeSystem: true,
        tokenCounter: countTokens,
      };
      return async ({ length }) => {
        const left = await stopwatch.time(() => langChain.trimMessages(upTo(length), options));
        return history.sent(left.flatMap(blocksOf), length);
      };
    },
  };
}

const KEPT_RESULTS = 3;
const placeholder = "[cleared]";

export function clearToolUsesPeer(version: string, langChain: LangChain): Peer {
  return {
    name: `langchain ${version}: ClearToolUsesEdit, keep ${KEPT_RESULTS}`,
    isRecounting: true,
    open(session, { budget, stopwatch, counter }) {
      const history = createBlockHistory(session);
      const { upTo, blocksOf, countTokens } = convert(history, langChain, counter);
      const trigger = { tokens: Math.ceil(threshold * budget) };
      const edit = new langChain.ClearToolUsesEdit({
        trigger,
        keep: { messages: KEPT_RESULTS },
        placeholder,
      });
      return async ({ length }) => {
        const messages = upTo(length);
        await stopwatch.time(() => edit.apply({ messages, countTokens }));
        return history.sent(messages.flatMap(blocksOf), length);
      };
    },
  };
}

interface Converted {
  upTo(length: number): LangChainMessage[];
  blocksOf(message: LangChainMessage): readonly Block[];
  readonly countTokens: CountTokens;
}

/** Both hand copies around, so messages are known by their id; one that was cleared has lost it and is known by its call. */
function convert(history: BlockHistory, langChain: LangChain, counter: Counter | undefined): Converted {
  const origins = new Map<string | undefined, readonly Block[]>();
  const cleared = new Map<string | undefined, readonly Block[]>();
  const own = (blocks: readonly Block[]): LangChainMessage => {
    const id = `${blocks[0]!.message}:${blocks[0]!.index}`;
    origins.set(id, blocks);
    const { type, tool_use_id } = blocks[0]!.value;
    if (type === "tool_result") cleared.set(tool_use_id, [history.clear(blocks[0]!, placeholder)]);
    return messageOf(blocks, { id, history, langChain });
  };
  const converted = history.messages.map((blocks) => unitsOf(blocks).map(own));
  const blocksOf = ({ id, tool_call_id }: LangChainMessage): readonly Block[] =>
    origins.get(id) ?? cleared.get(tool_call_id) ?? [];
  const count = (block: Block): number => counter?.count(textOf(block)) ?? block.tokens;
  return {
    upTo: (length) => converted.slice(0, length).flat(),
    blocksOf,
    countTokens(messages) {
      let sum = 0;
      for (const message of messages) for (const block of blocksOf(message)) sum += count(block);
      return sum;
    },
  };
}

/** The blocks of one message as LangChain's messages: every result is a message of its own. */
function unitsOf(blocks: readonly Block[]): Block[][] {
  const isResult = ({ value }: Block): boolean => value.type === "tool_result";
  const rest = blocks.filter((block) => !isResult(block));
  return [...blocks.filter(isResult).map((block) => [block]), ...(rest.length > 0 ? [rest] : [])];
}

interface Conversion {
  readonly id: string;
  readonly history: BlockHistory;
  readonly langChain: LangChain;
}

function messageOf(blocks: readonly Block[], { id, history, langChain }: Conversion): LangChainMessage {
  const [first] = blocks as [Block];
  const { type, tool_use_id } = first.value;
  if (type === "tool_result") {
    const name = history.toolNameOf(first);
    return new langChain.ToolMessage({ id, content: textOf(first), tool_call_id: tool_use_id, name });
  }
  const content = blocks.map(({ value }) => value.text ?? "").join("\n");
  if (first.role === "user") return new langChain.HumanMessage({ id, content });
  const calls = blocks.filter(({ value }) => value.type === "tool_use");
  const toolCalls = calls.map(({ value: { name, id: callId, input } }) => {
    return { type: "tool_call", id: callId, name, args: input };
  });
  return new langChain.AIMessage({ id, content, tool_calls: toolCalls });
}
