/** Applies the decisions on one message: what to send, its tokens, and how many of the original's tokens can still be
 *  read. */
import { type CountedPart, inputOf, type MessageLens, type PartEdit, subjectKeys } from "../../core/messages/index.ts";
import { type Fields, isInsidePair, isPlainObject } from "../../core/text/index.ts";
import type { Decision, LoggedDecision } from "./decision-log.ts";
import type { TrackedMessage } from "./tracked-history.ts";

export type Decisions = ReadonlyMap<number, LoggedDecision>;

export function applyDecisions(
  message: Pick<TrackedMessage, "source" | "original" | "decisions">,
  lens: MessageLens,
  index: number,
): Pick<TrackedMessage, "sent" | "tokens" | "kept"> {
  const { source, original, decisions } = message;
  if (decisions.size === 0) return { sent: source, tokens: original.tokens, kept: original.tokens };
  const sent = editMessage(message, lens);
  if (sent === undefined) return { sent, tokens: 0, kept: 0 };
  let kept = original.tokens;
  for (const [part, { decision }] of decisions) {
    const read = original.parts[part];
    if (read === undefined) continue;
    let lost = 1;
    if (decision.action === "shorten") {
      const { length } = readText(read);
      if (length > 0) lost -= Math.min(1, (decision.head + decision.tail) / length);
    }
    kept -= read.tokens * lost;
  }
  // Round here, so that totals do not depend on the order in which messages were added.
  return { sent, tokens: lens.read(sent, index).tokens, kept: Math.round(kept) };
}

function editMessage(
  { source, original, decisions }: Pick<TrackedMessage, "source" | "original" | "decisions">,
  lens: MessageLens,
): object | undefined {
  const edits = new Map<number, PartEdit>();
  let isDetached = false;
  for (const [part, { decision }] of decisions) {
    const { action } = decision;
    if (action === "stub") return lens.assistantText(decision.text);
    if (action === "detach") isDetached = true;
    else if (action === "drop") edits.set(part, { action });
    else edits.set(part, createReplacement(original.parts[part], decision));
  }
  const sent = lens.edit(source, edits);
  return sent !== undefined && isDetached ? lens.detach(sent) : sent;
}

function createReplacement(
  part: CountedPart | undefined,
  decision: Extract<Decision, { action: "replace" | "shorten" }>,
): PartEdit {
  if (decision.action === "shorten") return { action: "replace", text: shortenText(readText(part), decision) };
  const { text, keeps, digest } = decision;
  const input = keeps === undefined || part === undefined ? undefined : shortInput(inputOf(part), { text, keeps });
  return { action: "replace", text: digest === undefined ? text : `${text}\n${digest}`, input };
}

/** Joins all readable text of a part. The input of a call is read as JSON. */
export function readText(part: CountedPart | undefined): string {
  const texts: string[] = [];
  for (const piece of part?.pieces ?? []) {
    if (piece.kind === "tool_call")
      texts.push(typeof piece.args === "string" ? piece.args : JSON.stringify(piece.args));
    else if ("text" in piece && piece.text !== "") texts.push(piece.text);
  }
  return texts.join("\n");
}

/** Keeps the beginning and the end of a text, without cutting a surrogate pair. Equal numbers give equal bytes. */
export function shortenText(text: string, { head, tail }: { head: number; tail: number }): string {
  if (head + tail >= text.length) return text;
  const start = isInsidePair(text, head) ? head - 1 : head;
  const rest = text.length - tail;
  const end = isInsidePair(text, rest) ? rest + 1 : rest;
  return `${text.slice(0, start)}\n[trimmed: ${end - start} characters]\n${text.slice(end)}`;
}

/** Replaces the long fields of an input with the text, and keeps those whose JSON has at most `keeps` characters, such
 *  as a path. A long command keeps its beginning. Returns undefined if no field can stay. */
export function shortInput(input: unknown, { text, keeps }: { text: string; keeps: number }): Fields | undefined {
  if (!isPlainObject(input)) return undefined;
  const fields = Object.entries(input);
  if (fields.length > 12 || fields.some(([name]) => name.length > keeps)) return undefined;
  // At most four fields of the largest size are kept.
  let left = 4 * keeps;
  let kept = 0;
  let placeholder = text;
  const short = fields.map(([name, value]): [string, unknown] => {
    const { length } = JSON.stringify(value) ?? "";
    left -= length;
    if (length <= keeps && left >= 0) {
      kept++;
      return [name, value];
    }
    const beginning = subjectKeys.includes(name) && typeof value === "string" ? takeBeginning(value) : "";
    if (beginning !== "") kept++;
    const replaced = `${beginning}${placeholder}`;
    // The id for `recall` is written once.
    placeholder = "[trimmed]";
    return [name, replaced];
  });
  return kept === 0 ? undefined : Object.fromEntries(short);
}

function takeBeginning(text: string): string {
  const [line = ""] = text.slice(0, 40).split("\n");
  return line === "" ? "" : `${isInsidePair(text, line.length) ? line.slice(0, -1) : line} `;
}
