/** The AI SDK's `pruneMessages`, which takes tool calls and their results out of all but the last messages, on every call. */
import type { ModelMessage, pruneMessages } from "ai";
import { type Block, type BlockHistory, createBlockHistory, textOf } from "./block-history.ts";
import type { Peer } from "./peer.ts";

export function aiSdkPeer(version: string, prune: typeof pruneMessages): Peer {
  return {
    name: `ai ${version}: pruneMessages, last 10`,
    isRecounting: false,
    open(session, { stopwatch }) {
      const history = createBlockHistory(session);
      const origins = new WeakMap<object, Block>();
      const converted = history.messages.map((blocks) => convert(blocks, { history, origins }));
      return async ({ length }) => {
        const messages = converted.slice(0, length).flat();
        const options = { messages, toolCalls: "before-last-10-messages" } as const;
        const left = await stopwatch.time(() => prune(options));
        const parts = left.flatMap(({ content }) => content as readonly object[]);
        return history.sent(
          parts.map((part) => origins.get(part)!),
          length,
        );
      };
    },
  };
}

interface Conversion {
  readonly history: BlockHistory;
  /** The block of each part: parts that stay are passed on as the same objects. */
  readonly origins: WeakMap<object, Block>;
}

function convert(blocks: readonly Block[], { history, origins }: Conversion): ModelMessage[] {
  const convertAll = (some: readonly Block[]): object[] =>
    some.map((block) => {
      const part = partOf(block, history);
      origins.set(part, block);
      return part;
    });
  const results = blocks.filter(({ value }) => value.type === "tool_result");
  const rest = blocks.filter(({ value }) => value.type !== "tool_result");
  const messages = [
    ...(results.length > 0 ? [{ role: "tool", content: convertAll(results) }] : []),
    ...(rest.length > 0 ? [{ role: rest[0]!.role, content: convertAll(rest) }] : []),
  ];
  return messages as ModelMessage[];
}

/** Only kinds and ids are looked at: content that has no kind of its own there may stand as text. */
function partOf(block: Block, history: BlockHistory): object {
  const { type, text = "", thinking = "", id, name, input, tool_use_id } = block.value;
  switch (type) {
    case "tool_use":
      return { type: "tool-call", toolCallId: id, toolName: name, input };
    case "tool_result": {
      const output = { type: "text", value: textOf(block) };
      return { type: "tool-result", toolCallId: tool_use_id, toolName: history.toolNameOf(block), output };
    }
    case "thinking":
    case "redacted_thinking":
      return { type: "reasoning", text: thinking };
    default:
      return { type: "text", text };
  }
}
