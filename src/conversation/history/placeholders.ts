/** Placeholders for trimmed content. A placeholder is short and never changes once it is written. */
import { type CountedPart, inputOf, subjectOf, textsOf } from "../../core/messages/index.ts";
import { isPlainObject } from "../../core/text/index.ts";
import { shortInput, textOf } from "./apply-decisions.ts";
import type { ReplaceDecision } from "./decision-log.ts";
import type { Decide } from "./draft.ts";

export type PlaceholderStyle = "plain" | "descriptive";

export const plainPlaceholder = "[trimmed]";
export const plain: Decide = () => ({ action: "replace", text: plainPlaceholder });

/** How the placeholders of one epoch are written. */
export interface PlaceholderForm {
  readonly style: PlaceholderStyle;
  /** Whether to name the ids for `recall`. Without a tool that takes them they only cost tokens. */
  readonly hasRecall: boolean;
}

/** Makes the placeholder of a part. `callOf` returns the tool call that a result answers, and a call itself. */
export type DescribePart = (part: CountedPart, callOf: FindCall) => (id: string) => ReplaceDecision;
export type FindCall = (part: CountedPart) => CountedPart | undefined;

export function describePart({ style, hasRecall }: PlaceholderForm): DescribePart {
  return (part, callOf) => (id) => {
    const facts = style === "plain" ? undefined : description(part, callOf(part));
    const known = hasRecall ? `; recall id ${id}` : "";
    const text = facts === undefined ? plainPlaceholder : `[trimmed: ${facts}${known}]`;
    return { action: "replace", text, ...(part.kind === "tool_call" && { keeps: longestField }) };
  };
}

/** Fields of an input that have more characters of JSON are replaced. */
const longestField = 120;

/** Whether the part consists of a placeholder only, possibly one that an earlier trimmer wrote. */
export function isPlaceholder(part: CountedPart): boolean {
  if (part.tokens > maxPlaceholderTokens) return false;
  return part.kind === "tool_call" ? isShortInput(inputOf(part)) : written.test(textOf(part));
}

const maxPlaceholderTokens = 300;
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

function description(part: CountedPart, call: CountedPart | undefined): string {
  const isCall = part.kind === "tool_call";
  const name = [call?.toolName ?? part.toolName ?? kindWords[part.kind], subjectOf(call && inputOf(call))];
  // A call has its name and its path beside the placeholder.
  const facts = isCall ? [] : [name.filter((word) => word !== undefined && word !== "").join(" ")];
  const text = isCall ? longestOf(textsOf(part)) : textOf(part);
  const lines = text.replace(/\n$/, "").split("\n").length;
  if (lines > 1) facts.push(`${lines} lines`);
  return facts.join(", ") || "input";
}

function longestOf(texts: readonly string[]): string {
  return texts.reduce((longest, text) => (text.length > longest.length ? text : longest), "");
}

const kindWords: Readonly<Record<CountedPart["kind"], string>> = {
  text: "text",
  thinking: "thinking",
  tool_call: "call",
  tool_result: "result",
  media: "media",
  other: "content",
};
