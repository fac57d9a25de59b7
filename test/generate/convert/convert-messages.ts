/** A generated history in the shape of another format. For tests only: real histories are never converted, lenses read them as they are. */
import type { FormatName } from "../../../src/core/messages/index.ts";
import { isCall, resultText, splitResults } from "../read-blocks.ts";
import type { SessionMessage } from "../session-message.ts";
import { toAiSdk } from "./convert-to-ai-sdk.ts";
import { toGemini } from "./convert-to-gemini.ts";
import { toOpenAi } from "./convert-to-openai.ts";
import { toResponses } from "./convert-to-responses.ts";

/** The same history, as far as the format can say it: chat completions and the RFC have no thinking. */
export function convertMessages(messages: readonly SessionMessage[], format: FormatName): readonly object[] {
  const names = new Map<string, string>();
  const convert = converters[format];
  return messages.flatMap((message) => {
    for (const { id, name } of message.content.filter(isCall)) names.set(id, name);
    return convert(message, names);
  });
}

/** `names`: the tool that was last called under an id. */
type Converter = (message: SessionMessage, names: ReadonlyMap<string, string>) => readonly object[];

const converters: Readonly<Record<FormatName, Converter>> = {
  anthropic: (message) => [message],
  openai: toOpenAi,
  responses: toResponses,
  "ai-sdk": toAiSdk,
  gemini: toGemini,
  rfc: toRfc,
};

function toRfc({ role, content }: SessionMessage): readonly object[] {
  const { results, rest } = splitResults(content);
  const parts = rest.flatMap((block): object[] => {
    if (block.type === "tool_use") return [{ type: "tool_use", id: block.id, name: block.name, args: block.input }];
    return block.type === "text" || block.type === "image" ? [block] : [];
  });
  const answers = results.map((result) => ({
    type: "tool_result",
    tool_use_id: result.tool_use_id,
    content: resultText(result),
  }));
  return [
    ...(answers.length > 0 ? [{ role: "tool", content: answers }] : []),
    ...(parts.length > 0 ? [{ role, content: parts }] : []),
  ];
}
