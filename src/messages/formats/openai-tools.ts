/** What OpenAI bills for tools, and for messages beside their text. */
import { type Fields, fieldsAt, jsonAt, stringAt } from "../fields.ts";
import type { Overheads, ToolReading } from "../message-format.ts";

export const openAiOverheads: Overheads = {
  request: 3, // every reply is primed with 3 tokens (OpenAI cookbook, How to count tokens with tiktoken, 2024)
  message: 4, // 3 and the word of the role (same page)
  part: 0, // a list of texts is billed like its texts
  // Not published. Three requests with 1, 2 and 3 calls of a sum (community.openai.com/t/538914) leave 4 to 9 for a call
  // and its result beyond their texts and messages, and 24 once for several calls at a time.
  toolCall: 9,
  toolResult: 3,
  tool: 0, // the JSON of a definition is longer than what the cookbook counts for it with its 7 tokens of frame
  toolFactor: 1,
};

/** A tool of chat completions: nested under `function` or `custom`. */
export function readChatTool(tool: Fields, path: string): ToolReading {
  const key = tool.type === "custom" ? "custom" : "function";
  return readDefinition(fieldsAt(tool[key], `${path}.${key}`), `${path}.${key}`);
}

/** A tool of the responses API: flat, or one that the provider holds itself. */
export function readResponsesTool(tool: Fields, path: string): ToolReading {
  const isOwn = tool.type === "function" || tool.type === "custom";
  if (isOwn) return readDefinition(tool, path);
  return { text: jsonAt(tool, path), fixedTokens: hostedToolTokens };
}

// `strict` and the like are not part of what the model reads.
function readDefinition(definition: Fields, path: string): ToolReading {
  const { description, parameters, format } = definition;
  const name = stringAt(definition, "name", path);
  return { text: jsonAt({ name, description, parameters, format }, path), fixedTokens: 0 };
}

/** Once for all definitions (same page, `func_end`). */
export const openAiToolPromptTokens = 12;
/** Own choice: no figure is published for search, code interpreter, computer use and the like. */
export const hostedToolTokens = 700;
