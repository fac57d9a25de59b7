/** OpenAI responses: every call, result and thought is an item of its own in the list. */
import { dataUrl } from "../read-blocks.ts";
import type { ResultBlock, SessionBlock, SessionMessage } from "../session-message.ts";

export function toResponses({ role, content }: SessionMessage): readonly object[] {
  const isPlain = (block: SessionBlock) => block.type === "text" || block.type === "image";
  const others = content.filter((block) => !isPlain(block));
  const parts = content.filter(isPlain).map((block) => partOf(block, role));
  const said = parts.length === 0 ? [] : [{ type: "message", role, content: parts }];
  const before = others.filter((block) => block.type !== "tool_use");
  const after = others.filter((block) => block.type === "tool_use");
  return [...before.map(itemOf), ...said, ...after.map(itemOf)];
}

function itemOf(block: SessionBlock): object {
  switch (block.type) {
    case "tool_use":
      return {
        type: "function_call",
        call_id: block.id,
        name: block.name,
        arguments: JSON.stringify(block.input),
      };
    case "tool_result":
      return { type: "function_call_output", call_id: block.tool_use_id, output: outputOf(block) };
    case "thinking": {
      const summary = [{ type: "summary_text", text: block.thinking }];
      return {
        type: "reasoning",
        id: reasoningId(block.signature),
        summary,
        encrypted_content: block.signature,
      };
    }
    case "redacted_thinking":
      return { type: "reasoning", id: reasoningId(block.data), summary: [], encrypted_content: block.data };
    default:
      return partOf(block, "user");
  }
}

function outputOf({ content }: ResultBlock): string | readonly object[] {
  return typeof content === "string" ? content : content.map((block) => partOf(block, "user"));
}

function partOf(block: SessionBlock, role: string): object {
  if (block.type === "image") return { type: "input_image", image_url: dataUrl(block) };
  const text = block.type === "text" ? block.text : "";
  return { type: role === "assistant" ? "output_text" : "input_text", text };
}

function reasoningId(sealed: string): string {
  return `rs_${sealed.replace(/\W/g, "").slice(0, 16)}`;
}
