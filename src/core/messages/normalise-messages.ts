/** Repairs a recorded history so that providers accept it. What happens to a message depends only on messages up to the
 *  next assistant turn. So the history up to any turn is repaired the same way, however it continues. */

import type { Fields } from "../text/index.ts";
import { failAt, fieldsAt, typeName } from "./fields.ts";
import { isUnnamed } from "./formats/gemini.ts";
import { chooseFormat } from "./formats/index.ts";
import type { CallName, FormatName, MessageFormat, Part, PartEdit, Role } from "./message-format.ts";

/**
 * Repairs a recorded history so that providers accept it: merges neighbours of the same role where the format allows
 * it, adds results for unanswered calls, turns results without a call into user text, makes call ids unique and drops
 * empty texts. Messages that need no repair are returned as the same objects, and so is the list.
 *
 * @example
 * ```ts
 * import { normaliseMessages } from "plimsoll/messages";
 *
 * const call = { type: "tool_use", id: "t1", name: "read_file", input: { path: "a.ts" } };
 * const recorded = [{ role: "user", content: "Read a.ts." }, { role: "assistant", content: [call] }];
 * console.log(normaliseMessages([...recorded, { role: "user", content: "Stop." }]));
 * ```
 */
export function normaliseMessages(
  messages: readonly object[],
  options: {
    /** The shape of the messages. By default it is detected from the messages. */
    readonly format?: FormatName | undefined;
  } = {},
): readonly object[] {
  if (!Array.isArray(messages)) return failAt("messages", `must be an array, not ${typeName(messages)}`);
  const format = chooseFormat(messages, options.format);
  const nameCalls = createCallNames(format);
  const normalised: Fields[] = [];
  for (const { turn, rest } of splitSegments(messages, format)) {
    const turns = splitTurn(turn, format);
    if (needsStart(normalised, turns, format)) normalised.push(format.userText("(start)"));
    for (const each of turns.slice(0, -1)) normalised.push(...complete(each, [], { format, nameCalls }));
    normalised.push(...complete(turns.at(-1) ?? [], rest, { format, nameCalls }));
  }
  const isSame = normalised.length === messages.length && normalised.every((each, index) => each === messages[index]);
  return isSame ? messages : normalised;
}

// Replaces a turn, or everything between two turns, that has no content.
const nothing = "(empty)";

/** Returns each turn, which is neighbouring assistant messages, with all messages up to the next one. The first turn is
 *  empty. */
function splitSegments(messages: readonly unknown[], format: MessageFormat) {
  const segments: { turn: Fields[]; rest: Fields[] }[] = [{ turn: [], rest: [] }];
  let lastRole: Role | undefined;
  for (const [index, value] of messages.entries()) {
    const path = `messages[${index}]`;
    const message = fieldsAt(value, path);
    const { role } = format.read(message, path);
    if (role === "assistant" && lastRole !== "assistant") segments.push({ turn: [], rest: [] });
    segments.at(-1)![role === "assistant" ? "turn" : "rest"].push(message);
    lastRole = role;
  }
  return segments;
}

/** If calls are parts of messages, each message is its own turn, because its results must follow directly. */
function splitTurn(turn: readonly Fields[], format: MessageFormat): readonly (readonly Fields[])[] {
  if (turn.length === 0) return [];
  const visible = turn.flatMap<Fields>((message) => dropParts(message, format, isBlank) ?? []);
  const tidied = mergeNeighbours(visible, format);
  // Without a replacement, the users around it would become neighbours.
  if (tidied.length === 0) return [[format.assistantText(nothing)]];
  // If messages are single items, several of them make a turn. Such a format does not even merge two texts.
  const isOfItems = format.merge(format.assistantText("a"), format.assistantText("b")) === undefined;
  return isOfItems ? [tidied] : tidied.map((message) => [message]);
}

function complete(
  turn: readonly Fields[],
  rest: readonly Fields[],
  { format, nameCalls }: { format: MessageFormat; nameCalls: NameCalls },
): readonly Fields[] {
  const { messages, calls } = nameCalls(turn);
  const isLeading = turn.length === 0;
  const answered = answerCalls(rest, { calls, format, isLeading });
  // What follows a turn separates it from the next one and, for Anthropic, from system messages.
  const [first] = answered;
  const separates = first !== undefined && (!isSystemLast(format) || format.read(first, "message").role !== "system");
  const isSilent = !isLeading && rest.length > 0 && !separates;
  return [...messages, ...(isSilent ? [format.userText(nothing)] : []), ...answered];
}

/** Whether no user has spoken yet. A compaction by the provider may be first, in place of what it summarises. */
function needsStart(before: readonly Fields[], turns: readonly (readonly Fields[])[], format: MessageFormat): boolean {
  const first = turns[0]?.[0];
  if (first === undefined || before.some((message) => format.read(message, "message").role !== "system")) return false;
  const [part] = format.read(first, "message").parts;
  return (Object(part?.value) as Fields).type !== "compaction";
}

/** Puts results first and, if the provider requires it, system messages last. Returns the same list if the order is
 *  right. A message that belongs in two places is split. */
function orderParts(
  messages: readonly Fields[],
  { format, isLeading }: Omit<AnswerOptions, "calls">,
): readonly Fields[] {
  const ranked: { message: Fields; rankPart: (part: Part) => number; ranks: readonly number[] }[] = [];
  // Before the first turn, the system speaks first.
  let isStart = isLeading;
  for (const message of messages) {
    const { role, parts } = format.read(message, "message");
    isStart &&= role === "system";
    const others = role === "system" && !isStart && isSystemLast(format) ? ranks.system : ranks.other;
    const rankPart = (part: Part) => (role === "tool" || part.kind === "tool_result" ? ranks.result : others);
    ranked.push({ message, rankPart, ranks: parts.map(rankPart) });
  }
  const given = ranked.flatMap((each) => each.ranks);
  if (given.every((rank, index) => index === 0 || rank >= (given[index - 1] as number))) return messages;
  return Object.values(ranks).flatMap((rank) =>
    ranked.flatMap<Fields>(
      ({ message, rankPart }) => dropParts(message, format, (part) => rankPart(part) !== rank) ?? [],
    ),
  );
}

/** Anthropic accepts a system message only between a user and an assistant message. */
function isSystemLast(format: MessageFormat): boolean {
  return format.name === "anthropic";
}

// Anthropic requires results first in a message. The others require them directly after the turn.
const ranks = { result: 0, other: 1, system: 2 } as const;

/** Merges neighbours if the format allows it. */
function mergeNeighbours(messages: readonly Fields[], format: MessageFormat): readonly Fields[] {
  const merged: Fields[] = [];
  for (const message of messages) {
    const last = merged.at(-1);
    const both = last === undefined ? undefined : format.merge(last, message);
    if (both === undefined) merged.push(message);
    else merged[merged.length - 1] = both;
  }
  return merged;
}

/** Drops some parts of a message. Returns undefined if none is left, or if it had none. */
function dropParts(
  message: Fields,
  format: MessageFormat,
  isDropped: (part: Part, index: number) => boolean,
): Fields | undefined {
  const { parts } = format.read(message, "message");
  const edits = new Map<number, PartEdit>();
  for (const [index, part] of parts.entries()) if (isDropped(part, index)) edits.set(index, { action: "drop" });
  return parts.length === 0 ? undefined : format.edit(message, edits);
}

// Anthropic's API refuses a text without a visible character like an empty one.
function isBlank({ kind, pieces }: Part): boolean {
  return kind === "text" && pieces.every((piece) => piece.kind === "text" && piece.text.trim() === "");
}

/** A call whose id is unique in the history. Agents that number the calls of each turn repeat their ids. */
interface NamedCall extends CallName {
  /** The id as recorded, which the results have. */
  readonly recordedId: string;
}

/** Gives the calls of a turn ids that no earlier call has. Returns the messages, and the calls in order. */
type NameCalls = (turn: readonly Fields[]) => { messages: readonly Fields[]; calls: readonly NamedCall[] };

function createCallNames(format: MessageFormat): NameCalls {
  const used = new Set<string>();
  const uses = new Map<string, number>();
  // Anthropic accepts letters, digits, - and _ in an id.
  const makeUnique = (recordedId: string): string => {
    if (isUnnamed(recordedId)) return recordedId;
    let callId = recordedId;
    let use = uses.get(recordedId) ?? 1;
    while (used.has(callId)) callId = `${recordedId}_${++use}`;
    uses.set(recordedId, use);
    used.add(callId);
    return callId;
  };
  return (turn) => {
    const calls: NamedCall[] = [];
    const messages = turn.map((message) => {
      let named = message;
      for (const part of format.read(message, "message").parts) {
        if (part.kind !== "tool_call" || part.callId === undefined) continue;
        const callId = makeUnique(part.callId);
        const { type } = Object(part.value) as Fields;
        calls.push({ recordedId: part.callId, callId, toolName: part.toolName, type });
        named = renameCall(named, part, callId);
      }
      return named;
    });
    return { messages, calls };
  };
}

/** Changes the id of a call or a result. Returns the same message if it already has that id. */
function renameCall(message: Fields, { value, callId }: Part, newId: string): Fields {
  if (callId === newId) return message;
  const nestedFields = ["functionCall", "functionResponse"];
  const idFields = ["id", "tool_use_id", "tool_call_id", "call_id", "toolCallId"];
  const renamed = (block: Fields): Fields => {
    const ids = idFields.filter((name) => block[name] === callId).map((name) => [name, newId]);
    // Gemini has the id one level deeper.
    const nested = nestedFields
      .filter((name) => block[name] !== undefined)
      .map((name) => [name, { ...Object(block[name]), id: newId }]);
    return { ...block, ...Object.fromEntries([...ids, ...nested]) };
  };
  // A message that holds only one call or result is itself the part.
  if (value === message || typeof value !== "object") return renamed(message);
  const lists = Object.entries(message).filter(([, field]) => Array.isArray(field) && field.includes(value));
  const changed = lists.map(([name, list]) => [
    name,
    (list as readonly unknown[]).map((block) => (block === value ? renamed(value as Fields) : block)),
  ]);
  return { ...message, ...Object.fromEntries(changed) };
}

/** How to answer the calls of a turn. */
interface AnswerOptions {
  /** The calls of the previous turn. */
  readonly calls: readonly NamedCall[];
  readonly format: MessageFormat;
  /** Before the first turn. */
  readonly isLeading: boolean;
}

/** Returns what comes between two turns: one result for each call, then the rest. */
function answerCalls(messages: readonly Fields[], { calls, format, isLeading }: AnswerOptions): readonly Fields[] {
  const read = messages.map((message) => ({ message, parts: format.read(message, "message").parts }));
  const results = read.flatMap(({ parts }) => parts.filter(({ kind }) => kind === "tool_result"));
  const answers = matchResults(results, calls);
  const answered = new Set(answers.values());
  const missing = calls.filter(({ callId }) => !answered.has(callId));
  const kept = read.flatMap((each) => keepAnswers(each, answers, format));
  const added = missing.map((call) => format.toolResult(call, "[no result]"));
  return mergeNeighbours(orderParts([...added, ...kept], { format, isLeading }), format);
}

/** The id of the call that each result answers, or `replaced` if another result of that call comes later. A result that
 *  is missing here answers no call of the turn. */
type Answers = ReadonlyMap<Part, string | typeof replaced>;
const replaced = Symbol("replaced");

function matchResults(results: readonly Part[], calls: readonly NamedCall[]): Answers {
  const open = new Map<string, string[]>();
  for (const { recordedId, callId } of calls) open.set(recordedId, [...(open.get(recordedId) ?? []), callId]);
  const answers = new Map<Part, string | typeof replaced>();
  const last = new Map<string, Part>();
  for (const part of results) {
    const callIds = part.callId === undefined ? undefined : open.get(part.callId);
    if (callIds === undefined) continue;
    // Calls with the same id take its results in order. Further results belong to the last call.
    const callId = callIds.length > 1 ? (callIds.shift() as string) : (callIds[0] as string);
    const earlier = last.get(callId);
    if (earlier !== undefined) answers.set(earlier, replaced);
    last.set(callId, part);
    answers.set(part, callId);
  }
  return answers;
}

/** Returns the message with the results that stay, followed by the other results as texts. */
function keepAnswers(
  { message, parts }: { readonly message: Fields; readonly parts: readonly Part[] },
  answers: Answers,
  format: MessageFormat,
): Fields[] {
  let named = message;
  const late: Fields[] = [];
  for (const part of parts) {
    const answer = answers.get(part);
    if (typeof answer === "string") named = renameCall(named, part, answer);
    else if (answer === undefined && part.kind === "tool_result") {
      const texts = part.pieces.map((piece) => ("text" in piece ? piece.text : `[${piece.kind}]`));
      late.push(format.userText(["[late tool output]", ...texts.filter((text) => text !== "")].join(" ")));
    }
  }
  const kept = dropParts(named, format, (part, index) => {
    const isResult = part.kind === "tool_result";
    return isResult ? typeof answers.get(parts[index] as Part) !== "string" : isBlank(part);
  });
  return kept === undefined ? late : [kept, ...late];
}
