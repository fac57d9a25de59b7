/** Runs one session through one policy, call by call, and collects the facts that the promises are checked against. */

import {
  type CountedPart,
  createMessageLens,
  type FormatName,
  type MessageLens,
} from "../../../core/messages/index.ts";
import type { Counter } from "../../../core/tokens/index.ts";
import type { Checkpoint } from "../checkpoint.ts";

import { createTrimmer, type Reduction, type Trimmer } from "../trimmer.ts";
import type { TrimmerOptions } from "../trimmer-options.ts";

export interface PolicyCase {
  readonly format: FormatName;
  /** The messages of one session, valid and frozen. Each call sends those up to one of `calls`. */
  readonly messages: readonly object[];
  readonly calls: readonly Call[];
  readonly options: Omit<TrimmerOptions, "policy" | "format" | "counter"> & { readonly counter: Counter };
}

export interface Call {
  readonly length: number;
  readonly isCold: boolean;
  /** Before this call the process restarts from its checkpoint and parses its history again. */
  readonly isRestart: boolean;
}

export interface Step extends PolicyStep {
  readonly input: readonly object[];
  readonly lens: MessageLens;
  readonly settings: TrimmerOptions;
  /** The same call in a process that was restarted from time to time. */
  readonly resumed: PolicyStep;
}

interface PolicyStep {
  readonly reduction: Reduction;
  readonly checkpoint: Checkpoint;
  /** The messages that are sent, as JSON. */
  readonly sent: readonly string[];
}

export async function runPolicy(settings: TrimmerOptions, policyCase: PolicyCase): Promise<Step[]> {
  const { messages, calls, options, format } = policyCase;
  // Both have a record from the beginning, so neither derives the turns that a call skips.
  const checkpoint = await (await createTrimmer(settings)).checkpoint();
  const trimmer = await createTrimmer({ ...settings, checkpoint });
  let other = await createTrimmer({ ...settings, checkpoint });
  let reparsed = reparse(messages);
  const lens = createMessageLens(messages, { counter: options.counter, format, model: options.model });
  const steps: Step[] = [];
  for (const each of calls) {
    const call = { ...each, isSummarised: settings.summarise !== undefined };
    if (call.isRestart) {
      reparsed = reparse(messages);
      other = await createTrimmer({ ...settings, checkpoint: reparse(await other.checkpoint()) });
    }
    const input = messages.slice(0, call.length);
    steps.push({
      ...(await step(trimmer, input, call)),
      input,
      lens,
      settings,
      resumed: await step(other, reparsed.slice(0, call.length), call),
    });
  }
  return steps;
}

async function step(
  trimmer: Trimmer,
  messages: readonly object[],
  { isCold, isSummarised }: Call & { readonly isSummarised: boolean },
): Promise<PolicyStep> {
  const reduction = isSummarised
    ? await trimmer.reduceWithSummary({ messages }, { isCold })
    : trimmer.reduce({ messages }, { isCold });
  const checkpoint = await trimmer.checkpoint();
  return { reduction, checkpoint, sent: reduction.messages.map((message) => JSON.stringify(message)) };
}

function reparse<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}

export interface PlacedPart extends CountedPart {
  readonly role: string;
  readonly message: object;
  /** Index in its message. */
  readonly at: number;
}

/** All parts of a list of messages, in order. */
export function partsOf(messages: readonly object[], lens: MessageLens): PlacedPart[] {
  // Never index 0: for the counter's cache that starts a conversation.
  return messages.flatMap((message) => {
    const { role, parts } = lens.read(message, 1);
    return parts.map((part, at) => ({ ...part, role, message, at }));
  });
}

/** Returns the placeholder of a part, or undefined if the part is unchanged. */
export function placeholderOf({ kind, value, pieces }: CountedPart): string | undefined {
  const texts = pieces.map((piece) => ("text" in piece ? piece.text : ""));
  const text = kind === "tool_call" ? JSON.stringify(value) : texts.join("");
  return text.includes("[trimmed") ? text : undefined;
}
