/** Placeholders for trimmed content. A placeholder is short and never changes once it is written. */
import { type CountedPart, inputOf, subjectOf, textsOf } from "../../core/messages/index.ts";
import { isPlainObject } from "../../core/text/index.ts";
import { readText, shortInput } from "./apply-decisions.ts";
import type { ReplaceDecision } from "./decision-log.ts";
import type { Decide } from "./draft.ts";

export type PlaceholderStyle = "plain" | "descriptive";

export const plainPlaceholder = "[trimmed]";
export const plain: Decide = () => ({ action: "replace", text: plainPlaceholder });

/** Makes the placeholder of a part. `findCall` returns the tool call that a result answers, and a call itself. */
export type DescribePart = (part: CountedPart, findCall: FindCall) => (createId: () => string) => ReplaceDecision;
export type FindCall = (part: CountedPart) => CountedPart | undefined;

/** Returns how the placeholders of one epoch are written. `hasRecall` says whether they name the ids for `recall`:
 *  without a tool that takes ids, these only cost tokens. */
export function createDescriber(style: PlaceholderStyle, hasRecall: boolean): DescribePart {
  return (part, findCall) => (createId) => {
    const facts = style === "plain" ? undefined : describe(part, findCall(part));
    const known = hasRecall ? `; recall id ${createId()}` : "";
    const text = facts === undefined ? plainPlaceholder : `[trimmed: ${facts}${known}]`;
    return { action: "replace", text, ...(part.kind === "tool_call" && { keeps: longestField }) };
  };
}

/** Fields of an input that have more characters of JSON are replaced. */
const longestField = 120;

/** Whether the part consists of a placeholder only, possibly one that an earlier trimmer wrote. */
export function isPlaceholder(part: CountedPart): boolean {
  const maxTokens = 300;
  if (part.tokens > maxTokens) return false;
  return part.kind === "tool_call" ? isShortInput(inputOf(part)) : written.test(readText(part));
}

const endsWritten = /\[trimmed(?:: [^[\]\n]*)?\]$/;
const written = new RegExp(`^${endsWritten.source}`);

/** Whether an earlier trimmer has replaced all long fields. */
function isShortInput(input: unknown): boolean {
  // OpenAI's built-in shell has its commands as text.
  if (!isPlainObject(input)) return typeof input === "string" && endsWritten.test(input);
  const values = Object.values(input);
  if (!values.some((value) => typeof value === "string" && endsWritten.test(value))) return false;
  const again = shortInput(input, { text: plainPlaceholder, keeps: longestField });
  return again !== undefined && Object.entries(again).every(([name, value]) => value === input[name]);
}

function describe(part: CountedPart, call: CountedPart | undefined): string {
  const isCall = part.kind === "tool_call";
  const name = [call?.toolName ?? part.toolName ?? kindWords[part.kind], subjectOf(call && inputOf(call))];
  // A call has its name and its path beside the placeholder.
  const facts = isCall ? [] : [name.filter((word) => word !== undefined && word !== "").join(" ")];
  const texts = isCall ? textsOf(part) : [readText(part)];
  const text = texts.reduce((longest, each) => (each.length > longest.length ? each : longest), "");
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < text.length - 1; at = text.indexOf("\n", at + 1)) lines++;
  if (lines > 1) facts.push(`${lines} lines`);
  return facts.join(", ") || "input";
}

const kindWords: Readonly<Record<CountedPart["kind"], string>> = {
  text: "text",
  thinking: "thinking",
  tool_call: "call",
  tool_result: "result",
  media: "media",
  other: "content",
};
