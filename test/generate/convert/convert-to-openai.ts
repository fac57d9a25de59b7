/** OpenAI chat completions: arguments are JSON in a string, each result is a message of role `tool`; there is no thinking. */
import { dataUrl, isCall, resultText, splitResults } from "../read-blocks.ts";
import type { SessionBlock, SessionMessage } from "../session-message.ts";

export function toOpenAi({ role, content }: SessionMessage): readonly object[] {
  if (role === "assistant") return assistant(content);
  const { results, rest } = splitResults(content);
  const answers = results.map((result) => ({
    role: "tool",
    tool_call_id: result.tool_use_id,
    content: resultText(result),
  }));
  return rest.length === 0 ? answers : [...answers, { role, content: partsOf(rest) }];
}

function assistant(content: readonly SessionBlock[]): readonly object[] {
  const calls = content.filter(isCall).map(({ id, name, input }) => ({
    id,
    type: "function",
    function: { name, arguments: JSON.stringify(input) },
  }));
  const text = content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
  if (calls.length === 0) return text === "" ? [] : [{ role: "assistant", content: text }];
  return [{ role: "assistant", content: text === "" ? null : text, tool_calls: calls }];
}

function partsOf(blocks: readonly SessionBlock[]): string | readonly object[] {
  const only = blocks.length === 1 ? blocks[0] : undefined;
  if (only?.type === "text") return only.text;
  return blocks.flatMap((block): object[] => {
    if (block.type === "image") return [{ type: "image_url", image_url: { url: dataUrl(block) } }];
    return block.type === "text" ? [{ type: "text", text: block.text }] : [];
  });
}
