import type { FormatName, MessageFormat } from "../message-format.ts";
import { anthropicFormat } from "./anthropic.ts";
import { rfcFormat } from "./rfc.ts";

/** Every message format. The first one also stands for messages that no format claims. */
export const formats: readonly [MessageFormat, ...MessageFormat[]] = [anthropicFormat, rfcFormat];

export function formatNamed(name: FormatName): MessageFormat | undefined {
  return formats.find((format) => format.name === name);
}

/** The format of a conversation: that of the first message which can only be of one. */
export function formatOf(messages: readonly unknown[]): MessageFormat {
  for (const message of messages) {
    if (typeof message !== "object" || message === null) continue;
    const format = formats.find((each) => each.claims(message as Readonly<Record<string, unknown>>));
    if (format !== undefined) return format;
  }
  return formats[0];
}
