/** What stands between two turns of the assistant: first one result for each call, then the rest. */
import type { Fields } from "../fields.ts";
import type { MessageFormat, Part } from "../message-format.ts";
import { type NamedCall, renameCall } from "./call-names.ts";
import { orderParts } from "./order-parts.ts";
import { dropParts, isBlank, mergeNeighbours, userText } from "./tidy-messages.ts";

export interface AnswerOptions {
  /** Those of the turn before. */
  readonly calls: readonly NamedCall[];
  readonly format: MessageFormat;
  /** Before the first turn. */
  readonly isLeading: boolean;
}

export function answerCalls(messages: readonly Fields[], options: AnswerOptions): readonly Fields[] {
  const { calls, format, isLeading } = options;
  const parts = messages.map((message) => format.read(message, "message").parts);
  const answers = matchResults(parts.flat(), calls);
  const answered = new Set(answers.values());
  const missing = calls.filter(({ callId }) => !answered.has(callId));
  const kept = messages.flatMap((message, index) =>
    keepAnswers({ message, parts: parts[index] as readonly Part[] }, answers, format),
  );
  const results = missing.map((call) => format.toolResult(call, "[no result]"));
  return mergeNeighbours(orderParts([...results, ...kept], { format, isLeading }), format);
}

/** The id of the call that a result answers; `replaced` where another result of that call comes later. A result that is not in here
 *  answers no call of the turn. */
type Answers = ReadonlyMap<Part, string | typeof replaced>;
const replaced = Symbol("replaced");

function matchResults(parts: readonly Part[], calls: readonly NamedCall[]): Answers {
  const open = new Map<string, string[]>();
  for (const { recordedId, callId } of calls) open.set(recordedId, [...(open.get(recordedId) ?? []), callId]);
  const answers = new Map<Part, string | typeof replaced>();
  const last = new Map<string, Part>();
  for (const part of parts) {
    const callIds = part.kind === "tool_result" ? open.get(part.callId ?? "") : undefined;
    if (callIds === undefined || part.callId === undefined) continue;
    // Calls with one id take its results in order; what comes then is for the last of them.
    const callId = callIds.length > 1 ? (callIds.shift() as string) : (callIds[0] as string);
    const earlier = last.get(callId);
    if (earlier !== undefined) answers.set(earlier, replaced);
    last.set(callId, part);
    answers.set(part, callId);
  }
  return answers;
}

interface ReadMessage {
  readonly message: Fields;
  readonly parts: readonly Part[];
}

/** The message with the results that stay, and the others as texts behind it. */
function keepAnswers({ message, parts }: ReadMessage, answers: Answers, format: MessageFormat): Fields[] {
  let named = message;
  const late: Fields[] = [];
  for (const part of parts) {
    const answer = answers.get(part);
    if (typeof answer === "string") named = renameCall(named, part, answer);
    else if (answer === undefined && part.kind === "tool_result") late.push(lateText(part, format));
  }
  const kept = dropParts(named, format, (part, index) => {
    const isResult = part.kind === "tool_result";
    return isResult ? typeof answers.get(parts[index] as Part) !== "string" : isBlank(part);
  });
  return kept === undefined ? late : [kept, ...late];
}

function lateText({ pieces }: Part, format: MessageFormat): Fields {
  const texts = pieces.map((piece) => ("text" in piece ? piece.text : `[${piece.kind}]`));
  return userText(["[late tool output]", ...texts.filter((text) => text !== "")].join(" "), format);
}
