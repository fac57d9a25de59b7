/** Gemini's contents: parts without a type, responses as objects, thoughts as texts with a flag. It has no system messages. */
import { resultText, splitResults } from "../read-blocks.ts";
import type { SessionBlock, SessionMessage } from "../session-message.ts";

export function toGemini({ role, content }: SessionMessage, names: ReadonlyMap<string, string>): readonly object[] {
  const { results, rest } = splitResults(content);
  const answers = results.map((result) => ({
    functionResponse: {
      id: result.tool_use_id,
      name: names.get(result.tool_use_id) ?? "unknown",
      response: { output: resultText(result) },
    },
  }));
  const parts = [...answers, ...rest.flatMap(partsOf)];
  return parts.length === 0 ? [] : [{ role: role === "assistant" ? "model" : "user", parts }];
}

function partsOf(block: SessionBlock): readonly object[] {
  switch (block.type) {
    case "tool_use":
      return [{ functionCall: { id: block.id, name: block.name, args: block.input }, thoughtSignature: "c2lnbmVk" }];
    case "thinking":
      return [{ text: block.thinking, thought: true }];
    case "text":
      return [{ text: block.text }];
    case "image":
      return [{ inlineData: { mimeType: block.source.media_type, data: block.source.data } }];
    default:
      return [];
  }
}
