import { type JsonRange, memberOf, valuesFrom } from "../../text/index.ts";
import type { MessagesInput } from "../messages-input.ts";

export interface RewriteInput extends Pick<MessagesInput, "source" | "key"> {
  readonly messages: readonly object[];
}

/** The text that the messages were read from, with what is sent in their place. A message that is still the same object is copied as
 *  it was written, and so is everything around the messages. */
export function rewriteMessages(input: RewriteInput, sent: readonly object[]): string {
  const { source, messages, key } = input;
  const { text } = source;
  const isSame =
    sent.length === messages.length && sent.every((message, index) => message === messages[index]);
  if (isSame) return text;
  if (source.isLines) return rewriteLines(input, sent);
  const list =
    key === undefined ? { start: text.indexOf("["), end: text.length } : memberOf(text, 0, key)!.value;
  // One text stood for the messages.
  if (text[list.start] !== "[") return replaceRange(text, list, JSON.stringify(sent));
  const ranges = valuesFrom(text, list.start + 1);
  const [first, last] = [ranges[0], ranges.at(-1)];
  if (first === undefined || last === undefined) return text;
  const style = styleOf(text, { ranges, list, depth: key === undefined ? 1 : 2 });
  const sources = new Map(messages.map((message, index) => [message, index]));
  const elements = sent.map((message, position) => {
    const index = sources.get(message);
    const written = index === undefined ? style.write(message) : textAt(text, ranges[index]!);
    if (position === 0) return written;
    return `${index === undefined || index === 0 ? style.separator : between(text, ranges, index)}${written}`;
  });
  return replaceRange(text, { start: first.start, end: last.end }, elements.join(""));
}

/** The line about the transcript, where there is one, stays in front. */
function rewriteLines({ source: { text }, messages }: RewriteInput, sent: readonly object[]): string {
  const ranges = valuesFrom(text, 0);
  const about = ranges.slice(0, ranges.length - messages.length);
  const sources = new Map(messages.map((message, index) => [message, ranges[about.length + index]!]));
  const lines = sent.map((message) => {
    const range = sources.get(message);
    return range === undefined ? JSON.stringify(message) : textAt(text, range);
  });
  return [...about.map((range) => textAt(text, range)), ...lines].join("\n");
}

interface Style {
  readonly separator: string;
  write(message: object): string;
}

/** How a message that is not in the text is written there: over several lines only where others are. */
function styleOf(
  text: string,
  { ranges, list, depth }: { ranges: readonly JsonRange[]; list: JsonRange; depth: number },
): Style {
  const lead = text.slice(list.start + 1, ranges[0]!.start);
  const separator = ranges.length > 1 ? between(text, ranges, 1) : `,${lead}`;
  if (!lead.includes("\n") || !ranges.some((range) => textAt(text, range).includes("\n"))) {
    return { separator, write: (message) => JSON.stringify(message) };
  }
  const indentation = lead.slice(lead.lastIndexOf("\n") + 1);
  const unit = indentation.slice(0, indentation.length / depth) || "  ";
  return {
    separator,
    write: (message) => JSON.stringify(message, null, unit).replaceAll("\n", `\n${indentation}`),
  };
}

function between(text: string, ranges: readonly JsonRange[], index: number): string {
  return text.slice(ranges[index - 1]!.end, ranges[index]!.start);
}

function textAt(text: string, { start, end }: JsonRange): string {
  return text.slice(start, end);
}

function replaceRange(text: string, { start, end }: JsonRange, replacement: string): string {
  return `${text.slice(0, start)}${replacement}${text.slice(end)}`;
}
