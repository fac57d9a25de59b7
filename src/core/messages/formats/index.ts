import { ContextError } from "../../errors.ts";
import type { Fields } from "../../text/index.ts";
import type { FormatName, MessageFormat } from "../message-format.ts";
import { aiSdkFormat } from "./ai-sdk.ts";
import { anthropicFormat } from "./anthropic.ts";
import { geminiFormat } from "./gemini.ts";
import { openAiFormat } from "./openai.ts";
import { responsesFormat } from "./responses.ts";
import { rfcFormat } from "./rfc.ts";

/** Every message format. The first one also applies to messages that no format claims. The RFC's comes last, because it
 *  claims messages of role `tool` that no other format knows. */
export const formats: readonly [MessageFormat, ...MessageFormat[]] = [
  anthropicFormat,
  openAiFormat,
  responsesFormat,
  aiSdkFormat,
  geminiFormat,
  rfcFormat,
];

/** Returns the format with this name or, without a name, the format that the messages show. */
export function chooseFormat(messages: readonly unknown[], name: FormatName | undefined): MessageFormat {
  if (name === undefined) {
    // The first message that can only be of one format decides.
    for (const message of messages) {
      if (typeof message !== "object" || message === null || isPlain(message as Fields)) continue;
      const format = formats.find((each) => each.claims(message as Fields));
      if (format !== undefined) return format;
    }
    // Plain text with a `developer` is OpenAI's. Both of its formats read and edit it the same way.
    const hasDeveloper = messages.some((message) => Object(message).role === "developer");
    return hasDeveloper ? openAiFormat : formats[0];
  }
  const format = formats.find((each) => each.name === name);
  if (format !== undefined) return format;
  throw new ContextError("invalid_argument", `unknown message format "${name}"`, {
    hint: `Formats are ${formats.map((each) => each.name).join(", ")}.`,
  });
}

// No format claims text in a common role. A long chat has nothing else, and asking every format took longer than
// counting.
function isPlain(message: Fields): boolean {
  const { role, content } = message;
  if (role !== "user" && role !== "assistant" && role !== "system") return false;
  for (const name in message) if (name !== "role" && name !== "content") return false;
  if (!Array.isArray(content)) return typeof content === "string";
  return content.every((block: unknown) => {
    if (typeof block !== "object" || block === null || (block as Fields).type !== "text") return false;
    for (const name in block) if (name !== "type" && name !== "text") return false;
    return true;
  });
}
