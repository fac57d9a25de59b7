/** The AI SDK's `ModelMessage` (versions 6 and 7): results name their tool, and their output says what kind it is. */
import { splitResults } from "../read-blocks.ts";
import type { ResultBlock, SessionBlock, SessionMessage, TextBlock } from "../session-message.ts";

export function toAiSdk(message: SessionMessage, names: ReadonlyMap<string, string>): readonly object[] {
  const { role, content } = message;
  if (role === "system") {
    const texts = content.filter((block): block is TextBlock => block.type === "text");
    return [{ role, content: texts.map(({ text }) => text).join("\n") }];
  }
  const { results, rest } = splitResults(content);
  const answers = results.map((result) => ({
    type: "tool-result",
    toolCallId: result.tool_use_id,
    toolName: names.get(result.tool_use_id) ?? "unknown",
    output: outputOf(result),
  }));
  return [
    ...(answers.length > 0 ? [{ role: "tool", content: answers }] : []),
    ...(rest.length > 0 ? [{ role, content: rest.map(partOf) }] : []),
  ];
}

function partOf(block: SessionBlock): object {
  switch (block.type) {
    case "tool_use":
      return { type: "tool-call", toolCallId: block.id, toolName: block.name, input: block.input };
    case "thinking": {
      const providerOptions = { anthropic: { signature: block.signature } };
      return { type: "reasoning", text: block.thinking, providerOptions };
    }
    case "redacted_thinking":
      return { type: "reasoning", text: "", providerOptions: { anthropic: { redactedData: block.data } } };
    case "image":
      return { type: "image", image: block.source.data, mediaType: block.source.media_type };
    default:
      return block;
  }
}

function outputOf({ content, is_error: isError }: ResultBlock): object {
  if (typeof content === "string") return { type: isError === true ? "error-text" : "text", value: content };
  const value = content.map((block) => {
    if (block.type === "text") return { type: "text", text: block.text };
    return { type: "image-data", data: block.source.data, mediaType: block.source.media_type };
  });
  return { type: "content", value };
}
