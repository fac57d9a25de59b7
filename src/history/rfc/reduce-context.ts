import { dropRepeatedResults, mergeNeighbours } from "./merge-messages.ts";
import { removeXmlTag } from "./remove-xml-tag.ts";
import { checkMessages, type RfcMessage, type RfcPart } from "./rfc-message.ts";

/** The history as a model may see it, without a budget: checkpoint tags removed, neighbours of one role merged, repeated results
 *  dropped. The caller's messages stay as they are, and those that need no change come back as the same objects. */
export function reduceContext(messages: readonly object[]): readonly RfcMessage[] {
  const cleaned = checkMessages(messages).map(withoutCheckpointTags);
  return dropRepeatedResults(mergeNeighbours(cleaned));
}

/** Tags are the agent's own marks, for finding a checkpoint again. */
export const checkpointTag = "checkpoint_id";

function withoutCheckpointTags(message: RfcMessage): RfcMessage {
  const { content } = message;
  if (typeof content === "string") {
    const text = removeXmlTag(checkpointTag, content);
    return text === content ? message : { ...message, content: text };
  }
  const parts = content.map(cleanPart);
  return parts.every((part, index) => part === content[index]) ? message : { ...message, content: parts };
}

function cleanPart(part: RfcPart): RfcPart {
  if (part.type === "text") {
    const text = removeXmlTag(checkpointTag, part.text);
    return text === part.text ? part : { ...part, text };
  }
  if (part.type === "tool_result") {
    const content = removeXmlTag(checkpointTag, part.content);
    return content === part.content ? part : { ...part, content };
  }
  return part;
}
