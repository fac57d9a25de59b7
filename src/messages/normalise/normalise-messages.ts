/** A recorded history as one that providers accept. What is decided about a message depends on nothing behind the next assistant turn:
 *  the history up to any turn is normalised alike, however it goes on. */
import { type Fields, failAt, fieldsAt, typeName } from "../fields.ts";
import { chooseFormat } from "../formats/index.ts";
import type { FormatName, MessageFormat, Role } from "../message-format.ts";
import { answerCalls } from "./answer-calls.ts";
import { type CallNames, createCallNames } from "./call-names.ts";
import { isSystemLast } from "./order-parts.ts";
import { keepsItemsApart, tidyMessages, userText } from "./tidy-messages.ts";

export interface NormaliseOptions {
  /** Absent: recognised from the messages. */
  readonly format?: FormatName | undefined;
}

/** Merges neighbours of one role where the format does, answers calls that nobody answered, turns results without their call into
 *  user text, makes ids of calls unique, drops empty texts. The same objects, and the same list, where nothing is to be done. */
export function normaliseMessages(
  messages: readonly object[],
  options: NormaliseOptions = {},
): readonly object[] {
  if (!Array.isArray(messages)) return failAt("messages", `must be an array, not ${typeName(messages)}`);
  const format = chooseFormat(messages, options.format);
  const names = createCallNames(format);
  const normalised: Fields[] = [];
  for (const { turn, rest } of segmentsOf(messages, format)) {
    const turns = splitTurn(turn, format);
    if (needsStart(normalised, turns, format)) normalised.push(userText("(start)", format));
    for (const each of turns.slice(0, -1)) normalised.push(...complete(each, [], { format, names }));
    normalised.push(...complete(turns.at(-1) ?? [], rest, { format, names }));
  }
  return isSameList(messages, normalised) ? messages : normalised;
}

// What stands where a turn, or all between two turns, said nothing.
const nothing = "(empty)";

interface Segment {
  /** Neighbouring messages of the assistant; none at the beginning. */
  readonly turn: readonly Fields[];
  /** All up to the next turn. */
  readonly rest: readonly Fields[];
}

function segmentsOf(messages: readonly unknown[], format: MessageFormat): readonly Segment[] {
  const segments: { turn: Fields[]; rest: Fields[] }[] = [{ turn: [], rest: [] }];
  let lastRole: Role | undefined;
  for (const [index, value] of messages.entries()) {
    const path = `messages[${index}]`;
    const message = fieldsAt(value, path);
    const { role } = format.read(message, path);
    if (role === "assistant" && lastRole !== "assistant") segments.push({ turn: [], rest: [] });
    const { turn, rest } = segments.at(-1) as { turn: Fields[]; rest: Fields[] };
    (role === "assistant" ? turn : rest).push(message);
    lastRole = role;
  }
  return segments;
}

/** Where calls are parts of messages, each message is a turn of its own, since its results must follow at once. */
function splitTurn(turn: readonly Fields[], format: MessageFormat): readonly (readonly Fields[])[] {
  if (turn.length === 0) return [];
  const tidied = tidyMessages(turn, format);
  // Left with nothing, it would let the users around it become neighbours.
  if (tidied.length === 0) return [[format.assistantText(nothing)]];
  return keepsItemsApart(format) ? [tidied] : tidied.map((message) => [message]);
}

function complete(
  turn: readonly Fields[],
  rest: readonly Fields[],
  { format, names }: { format: MessageFormat; names: CallNames },
): readonly Fields[] {
  const { messages, calls } = names.unique(turn);
  const isLeading = turn.length === 0;
  const answered = answerCalls(rest, { calls, format, isLeading });
  const isSilent = !isLeading && rest.length > 0 && !startsWithUser(answered, format);
  return [...messages, ...(isSilent ? [userText(nothing, format)] : []), ...answered];
}

/** Whether what follows a turn keeps it apart from the next one, and, at Anthropic, from messages of the system. */
function startsWithUser(messages: readonly Fields[], format: MessageFormat): boolean {
  const [first] = messages;
  return first !== undefined && (!isSystemLast(format) || format.read(first, "message").role !== "system");
}

/** Whether no user has spoken yet. A compaction that the provider made stands first, in place of what it sums up. */
function needsStart(
  before: readonly Fields[],
  turns: readonly (readonly Fields[])[],
  format: MessageFormat,
): boolean {
  const first = turns[0]?.[0];
  if (first === undefined || before.some((message) => format.read(message, "message").role !== "system"))
    return false;
  const [part] = format.read(first, "message").parts;
  return (Object(part?.value) as Fields).type !== "compaction";
}

function isSameList(first: readonly unknown[], second: readonly unknown[]): boolean {
  return first.length === second.length && first.every((message, index) => message === second[index]);
}
