/** What stands in the place of trimmed content: constant once written, and short. */
import type { CountedPart } from "../messages/index.ts";
import { textOf } from "./apply-decisions.ts";
import type { Decide } from "./draft.ts";
import type { TrackedMessage } from "./tracked-history.ts";

export const placeholderStyles = ["plain", "descriptive"] as const;
export type PlaceholderStyle = (typeof placeholderStyles)[number];

export const plainPlaceholder = "[trimmed]";
export const plain: Decide = () => ({ action: "replace", text: plainPlaceholder });

/** `callOf` finds the tool call that a result answers; of a call, itself. */
export type DescribePart = (part: CountedPart, callOf: FindCall) => Decide;
export type FindCall = (part: CountedPart) => CountedPart | undefined;

export function describePart(style: PlaceholderStyle): DescribePart {
  if (style === "plain") return () => plain;
  return (part, callOf) => (id) => ({ action: "replace", text: description(part, callOf(part), id) });
}

/** Whether nothing but a placeholder stands there, be it one of an earlier trimmer. */
export function isPlaceholder(part: CountedPart): boolean {
  if (part.tokens > maxPlaceholderTokens) return false;
  const [piece] = part.pieces;
  const text = piece?.kind === "tool_call" ? JSON.stringify(piece.args) : textOf(part);
  return written.test(text);
}

const maxPlaceholderTokens = 150;
// Bare, or as the input of a call: in an object, or in the text of one.
const written = /^[{"\\trimed:]*\[trimmed(?:: [^[\]]*; recall id r\d+)?\][\\"}]*$/;

/** The call of each result, by message and part: the nearest call before it that has its id. */
export function callsOf(messages: readonly TrackedMessage[]): FindCall {
  const calls = new Map<CountedPart, CountedPart>();
  const latest = new Map<string, CountedPart>();
  for (const { original } of messages) {
    for (const part of original.parts) {
      if (part.callId === undefined) continue;
      if (part.kind === "tool_call") latest.set(part.callId, part);
      const call = latest.get(part.callId);
      if (call !== undefined) calls.set(part, call);
    }
  }
  return (part) => calls.get(part);
}

function description(part: CountedPart, call: CountedPart | undefined, id: string): string {
  const what = [call?.toolName ?? part.toolName ?? kindWords[part.kind], subjectOf(call)];
  const facts = part.kind === "tool_call" ? ["input"] : [];
  const lines = textOf(part).replace(/\n$/, "").split("\n").length;
  if (lines > 1) facts.push(`${lines} lines`);
  const name = what.filter((word) => word !== undefined && word !== "").join(" ");
  return `[trimmed: ${[name, ...facts].join(", ")}; recall id ${id}]`;
}

const kindWords: Readonly<Record<CountedPart["kind"], string>> = {
  text: "text",
  thinking: "thinking",
  tool_call: "call",
  tool_result: "result",
  media: "media",
  other: "content",
};

// The input that says best what a call was about, by the names that agents' tools give it.
const subjectKeys = [
  "file_path",
  "filePath",
  "path",
  "filename",
  "url",
  "pattern",
  "query",
  "command",
  "cmd",
];
const maxSubject = 60;

function subjectOf(call: CountedPart | undefined): string | undefined {
  const piece = call?.pieces.find(({ kind }) => kind === "tool_call");
  const args = argsOf(piece !== undefined && "args" in piece ? piece.args : undefined);
  for (const key of subjectKeys) {
    const value = args[key];
    if (typeof value === "string" && /^[\x20-\x5a\x5c\x5e-\x7e]+$/.test(value))
      return value.slice(0, maxSubject);
  }
  return undefined;
}

/** OpenAI's arguments are JSON text, and a model may have written something else. */
function argsOf(args: unknown): Readonly<Record<string, unknown>> {
  if (typeof args !== "string") return Object(args);
  try {
    return Object(JSON.parse(args));
  } catch {
    return {};
  }
}
