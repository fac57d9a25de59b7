/** The RFC's two repairs of a history, section 7.2: roles alternate, and a call has one result. Nothing is mutated, and what
 *  needs no repair is the same object. */
import { checkMessages, type RfcMessage, type RfcPart } from "./rfc-message.ts";

/** Neighbours of one role become one message with the parts of all, in order. Fields beside the content are the first one's. */
export function mergeConsecutiveSameRole(messages: readonly object[]): readonly RfcMessage[] {
  return mergeNeighbours(checkMessages(messages));
}

/** In each message of role `tool` the last result of a call stays, where that one stands. */
export function dedupToolResults(messages: readonly object[]): readonly RfcMessage[] {
  return dropRepeatedResults(checkMessages(messages));
}

/** `mergeConsecutiveSameRole` of messages that were checked before. */
export function mergeNeighbours(messages: readonly RfcMessage[]): readonly RfcMessage[] {
  const merged: RfcMessage[] = [];
  for (let index = 0; index < messages.length; ) {
    const first = messages[index] as RfcMessage;
    let end = index + 1;
    while (messages[end]?.role === first.role) end++;
    merged.push(end === index + 1 ? first : joined(messages.slice(index, end), first));
    index = end;
  }
  return merged;
}

/** `dedupToolResults` of messages that were checked before. */
export function dropRepeatedResults(messages: readonly RfcMessage[]): readonly RfcMessage[] {
  return messages.map((message) => {
    if (message.role !== "tool" || typeof message.content === "string") return message;
    const content = lastResults(message.content);
    return content.length === message.content.length ? message : { ...message, content };
  });
}

function joined(run: readonly RfcMessage[], first: RfcMessage): RfcMessage {
  return { ...first, content: run.flatMap(({ content }) => partsOf(content)) };
}

function partsOf(content: RfcMessage["content"]): readonly RfcPart[] {
  if (typeof content !== "string") return content;
  return content === "" ? [] : [{ type: "text", text: content }];
}

/** A result without an id repeats no other. */
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
