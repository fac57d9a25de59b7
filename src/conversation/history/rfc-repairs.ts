/** The repairs of the context-engineering RFC (section 7.2): checkpoint tags are removed, roles alternate, and a
 *  call has one result. */
import { ContextError } from "../../core/errors.ts";
import { plainPlaceholder } from "./placeholders.ts";
import { type RfcMessage, type RfcPart, readMessages } from "./rfc-message.ts";

/**
 * Removes every `<tag>…</tag>` from a text, line breaks included. White space is trimmed only at an end of the text
 * from which a tag was removed. A text without the tag is returned as it is.
 *
 * @example
 * ```ts
 * import { removeXmlTag } from "plimsoll/history";
 *
 * console.log(removeXmlTag("checkpoint_id", "<checkpoint_id>7</checkpoint_id> Continue."));
 * ```
 */
export function removeXmlTag(tagName: string, text: string): string {
  if (typeof tagName !== "string" || tagName === "") {
    throw new ContextError("invalid_argument", "a tag must have a name", {
      hint: 'Name it without brackets: removeXmlTag("checkpoint_id", text).',
    });
  }
  const kept = textsBetween(tagName, text);
  if (kept.length === 1) return text;
  let result = kept.join("");
  if (kept[0]?.trim() === "") result = result.trimStart();
  if (kept.at(-1)?.trim() === "") result = result.trimEnd();
  return result;
}

/** A tag ends at the first end tag that follows, as with a lazy regular expression. A regular expression would scan the
 *  text once for each start tag without an end; this scans it once. */
function textsBetween(tagName: string, text: string): string[] {
  const [opening, closing] = [`<${tagName}>`, `</${tagName}>`];
  const texts: string[] = [];
  let from = 0;
  for (;;) {
    const start = text.indexOf(opening, from);
    const end = start < 0 ? -1 : text.indexOf(closing, start + opening.length);
    if (end < 0) break;
    texts.push(text.slice(from, start));
    from = end + closing.length;
  }
  texts.push(text.slice(from));
  return texts;
}

/**
 * Merges neighbouring messages of the same role into one message with the parts of all, in order. The merged message
 * has the other fields of the first one.
 *
 * @example
 * ```ts
 * import { mergeConsecutiveSameRole } from "plimsoll/history";
 *
 * const messages = [{ role: "user", content: "Look at this." }, { role: "user", content: "And at that." }];
 * console.log(mergeConsecutiveSameRole(messages).length);
 * ```
 */
export function mergeConsecutiveSameRole(messages: readonly object[]): readonly RfcMessage[] {
  return mergeNeighbours(readMessages(messages));
}

/**
 * Removes repeated results: in each message of role `tool`, only the last result of each call stays.
 *
 * @example
 * ```ts
 * import { dedupToolResults } from "plimsoll/history";
 *
 * const result = { type: "tool_result", tool_use_id: "t1", content: "ok" };
 * console.log(dedupToolResults([{ role: "tool", content: [result, result] }]));
 * ```
 */
export function dedupToolResults(messages: readonly object[]): readonly RfcMessage[] {
  return dropRepeatedResults(readMessages(messages));
}

function mergeNeighbours(
  messages: readonly RfcMessage[],
  placeholderFor: (from: number, to: number) => RfcMessage | undefined = () => undefined,
): readonly RfcMessage[] {
  const merged: RfcMessage[] = [];
  for (let index = 0; index < messages.length; ) {
    const first = messages[index] as RfcMessage;
    let end = index + 1;
    while (messages[end]?.role === first.role) end++;
    const run =
      end === index + 1
        ? first
        : { ...first, content: messages.slice(index, end).flatMap(({ content }) => readParts(content)) };
    merged.push(placeholderFor(index, end) ?? run);
    index = end;
  }
  return merged;
}

function dropRepeatedResults(messages: readonly RfcMessage[]): readonly RfcMessage[] {
  return messages.map((message) => {
    if (message.role !== "tool" || typeof message.content === "string") return message;
    const content = lastResults(message.content);
    return content.length === message.content.length ? message : { ...message, content };
  });
}

function readParts(content: RfcMessage["content"]): readonly RfcPart[] {
  if (typeof content !== "string") return content;
  return content === "" ? [] : [{ type: "text", text: content }];
}

/** A result without an id is never a repeat. */
function lastResults(parts: readonly RfcPart[]): readonly RfcPart[] {
  const last = new Map<string, number>();
  for (const [index, part] of parts.entries()) {
    if (part.type === "tool_result" && part.tool_use_id !== undefined) last.set(part.tool_use_id, index);
  }
  return parts.filter((part, index) => {
    if (part.type !== "tool_result" || part.tool_use_id === undefined) return true;
    return last.get(part.tool_use_id) === index;
  });
}

/**
 * Prepares a history for a model, without a budget: removes `<checkpoint_id>` tags, merges neighbours of the same role
 * and drops repeated results. The caller's messages are not changed; a message that needs no change is returned as the
 * same object.
 *
 * @example
 * ```ts
 * import { reduceContext } from "plimsoll/history";
 *
 * const messages = reduceContext([{ role: "user", content: "<checkpoint_id>7</checkpoint_id> Continue." }]);
 * console.log(messages);
 * ```
 */
export function reduceContext(messages: readonly object[]): readonly RfcMessage[] {
  const checked = readMessages(messages);
  const cleaned = checked.map(withoutCheckpointTags);
  return dropRepeatedResults(mergeNeighbours(cleaned, (from, to) => placeholderFor(checked, cleaned, { from, to })));
}

/** Returns what to send for neighbours with nothing in them but checkpoint tags, because providers reject a message
 *  without content. */
function placeholderFor(
  checked: readonly RfcMessage[],
  cleaned: readonly RfcMessage[],
  { from, to }: { readonly from: number; readonly to: number },
): RfcMessage | undefined {
  const isEmpty = cleaned.slice(from, to).every(({ content }) => content.length === 0);
  const emptied = isEmpty ? checked.slice(from, to).find(({ content }) => content.length > 0) : undefined;
  if (emptied === undefined || typeof emptied.content === "string") {
    return emptied && { ...emptied, content: plainPlaceholder };
  }
  return { ...emptied, content: [{ ...(emptied.content[0] as RfcPart), text: plainPlaceholder } as RfcPart] };
}

/** Removes the tags that an agent writes to find a checkpoint again. */
export function removeCheckpointTags(text: string): string {
  return removeXmlTag("checkpoint_id", text);
}

function withoutCheckpointTags(message: RfcMessage): RfcMessage {
  const { content } = message;
  if (typeof content === "string") {
    const text = removeCheckpointTags(content);
    return text === content ? message : { ...message, content: text };
  }
  const parts = content.flatMap(cleanPart);
  return parts.every((part, index) => part === content[index]) && parts.length === content.length
    ? message
    : { ...message, content: parts };
}

/** Returns nothing for a text that was only a tag. */
function cleanPart(part: RfcPart): RfcPart | [] {
  if (part.type === "text") {
    const text = removeCheckpointTags(part.text);
    if (text === part.text) return part;
    return text === "" ? [] : { ...part, text };
  }
  if (part.type === "tool_result") {
    const content = removeCheckpointTags(part.content);
    return content === part.content ? part : { ...part, content };
  }
  return part;
}
