import type { Counter } from "../tokens/index.ts";
import { isUnchanged, takeSnapshot } from "./cache/snapshot.ts";
import {
  type CountContext,
  type CountOptions,
  countPart,
  createCountContext,
  frameTokens,
} from "./count-parts.ts";
import { failAt, fieldsAt, textOrListAt, typeName } from "./fields.ts";

/** Tokens of a conversation as the provider bills it, with roles and wrappers; 0 only for no messages. A system prompt
 *  outside the list counts as a message of role `system`. Costs what is new: a message is counted once, also
 *  when it comes as another object with the same content. Edits in place are noticed. */
export function countMessages(
  messages: readonly object[],
  counter: Counter,
  options: CountOptions = {},
): number {
  if (!Array.isArray(messages)) return failAt("messages", `must be an array, not ${typeName(messages)}`);
  if (messages.length === 0) return 0;
  const context = createCountContext(messages, counter, options);
  context.cache.texts.restart();
  context.cache.args.restart();
  let tokens = context.format.overheads.request;
  for (let index = 0; index < messages.length; index++) tokens += countOne(messages[index], index, context);
  return tokens;
}

/** Tokens of one message without the frame of the request: `countMessages` is the sum of these and that frame. */
export function countMessage(message: object, counter: Counter, options: CountOptions = {}): number {
  return countOne(message, undefined, createCountContext([message], counter, options));
}

/** Tokens of a system prompt beside the messages, a text or a list of blocks; 0 where there is none. */
export function countSystem(system: unknown, counter: Counter): number {
  if (system === undefined || system === null || system === "") return 0;
  textOrListAt(system, "system");
  return countMessage({ role: "system", content: system }, counter, { format: "anthropic" });
}

function countOne(message: unknown, index: number | undefined, context: CountContext): number {
  const { format, tier, cache } = context;
  const known = cache.messages.get(message as object);
  if (known?.format === format && known.tier === tier && isUnchanged(message, known.snapshot)) {
    return known.tokens;
  }
  const path = index === undefined ? "message" : `messages[${index}]`;
  const fields = fieldsAt(message, path);
  const reading = format.read(fields, path);
  const missesBefore = cache.misses;
  let tokens = frameTokens(reading, format.overheads);
  for (const part of reading.parts) tokens += countPart(part, context);
  if (cache.misses > missesBefore) {
    cache.messages.set(fields, { format, tier, snapshot: takeSnapshot(fields), tokens });
  }
  return tokens;
}
