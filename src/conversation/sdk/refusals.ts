/** Reads why a provider refused a request, from what it answers. An answer that no row knows is not a refusal here, and
 *  passes to the caller untouched. */
import { refusalWordings } from "./refusal-wordings.data.ts";

/** Why a provider refused a request, if sending another one can help. */
export type Refusal = LengthRefusal | ThinkingRefusal | { readonly kind: "stream_options" };

/** The request is too long. A number is missing if the provider does not say it. */
export interface LengthRefusal {
  readonly kind: "length";
  /** The tokens of the request, without the answer. */
  readonly tokens?: number | undefined;
  /** The most tokens that the model accepts. */
  readonly limit?: number | undefined;
  /** The tokens that were asked for as the answer, if they count against the limit. */
  readonly answer?: number | undefined;
}

/** A thinking block does not fit what comes before it. */
export interface ThinkingRefusal {
  readonly kind: "thinking";
  /** The index of the message in the request, if the provider names it. */
  readonly message?: number | undefined;
}

/** Reads the text of an error: the body of an answer, or an event of a stream. `status` is undefined for an event. */
export function readRefusal(status: number | undefined, text: string): Refusal | undefined {
  if (status !== undefined && !refusalStatuses.includes(status)) return undefined;
  // A provider also calls a request too large that would exceed a limit for each minute. A smaller one comes later.
  if (rateLimit.test(text)) return undefined;
  const thinking = boundThinking.exec(text);
  if (thinking !== null) return { kind: "thinking", message: parseNumber(thinking.groups?.message) };
  const length = readLength(text);
  if (length !== undefined) return length;
  if (streamOptions.test(text)) return { kind: "stream_options" };
  return status === 413 ? { kind: "length" } : undefined;
}

/** With these a provider refuses a request for what is in it. 422: openai-agents-python#442 (Mistral), 2025-04. */
export const refusalStatuses: readonly number[] = [400, 413, 422];

// Groq answers 413 "Request too large for model … on tokens per minute (TPM)" (from memory, 2026-11).
const rateLimit = /rate[ _-]?limit|tokens per (?:minute|day)|\bTPM\b|quota/i;

// platform.claude.com/docs, preserved thinking, 2026-10: `messages.N.content.M: Invalid `signature` in `thinking` block.
// The block is bound to a different conversation.`
const boundThinking =
  /(?:messages\.(?<message>\d+)\.content\.\d+: )?Invalid .signature. in .(?:redacted_)?thinking. block/;

// new-api#418, 2024-08: "Unknown parameter: 'stream_options'."
const streamOptions = /stream_options|include_usage/;

function readLength(text: string): LengthRefusal | undefined {
  for (const wording of refusalWordings) {
    const match = wording.exec(text);
    if (match === null) continue;
    const { tokens, total, limit, answer } = match.groups ?? {};
    const asked = parseNumber(answer);
    const whole = parseNumber(total);
    const own = parseNumber(tokens) ?? (whole === undefined ? undefined : whole - (asked ?? 0));
    return { kind: "length", tokens: own, limit: parseNumber(limit), answer: asked };
  }
  return undefined;
}

function parseNumber(digits: string | undefined): number | undefined {
  return digits === undefined ? undefined : Number(digits.replaceAll(",", ""));
}
