/** One session through one policy, call by call, with all that the promises of a policy are checked against. */
import {
  type CountedPart,
  createMessageLens,
  type FormatName,
  type MessageLens,
} from "../../messages/index.ts";
import type { Counter } from "../../tokens/index.ts";
import type { Checkpoint } from "../checkpoint.ts";
import type { Reduction } from "../trim.ts";
import { createTrimmer, type Trimmer } from "../trimmer.ts";
import type { TrimmerOptions } from "../trimmer-options.ts";

export interface PolicyCase {
  readonly format: FormatName;
  /** Of one session, valid and frozen. Each call sends those up to one of `calls`. */
  readonly messages: readonly object[];
  readonly calls: readonly Call[];
  readonly options: Omit<TrimmerOptions, "policy" | "format" | "counter"> & { readonly counter: Counter };
}

export interface Call {
  readonly length: number;
  readonly isCold: boolean;
  /** Before this call the process starts anew, from its checkpoint, and parses its history anew. */
  readonly isRestart: boolean;
}

export interface Step extends PolicyStep {
  readonly input: readonly object[];
  readonly lens: MessageLens;
  readonly settings: TrimmerOptions;
  /** The same call of a process that was restarted now and then. */
  readonly resumed: PolicyStep;
}

interface PolicyStep {
  readonly reduction: Reduction;
  readonly checkpoint: Checkpoint;
  /** What is sent, a message each. */
  readonly sent: readonly string[];
}

export async function runPolicy(settings: TrimmerOptions, policyCase: PolicyCase): Promise<Step[]> {
  const { messages, calls, options, format } = policyCase;
  const trimmer = await createTrimmer(settings);
  let other = await createTrimmer(settings);
  let reparsed = reparse(messages);
  const lens = createMessageLens(messages, { counter: options.counter, format, model: options.model });
  const steps: Step[] = [];
  for (const call of calls) {
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

async function step(trimmer: Trimmer, messages: readonly object[], { isCold }: Call): Promise<PolicyStep> {
  const reduction = trimmer.reduce({ messages }, { isCold });
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
  // Never index 0: that begins a conversation for the counter's cache.
  return messages.flatMap((message) => {
    const { role, parts } = lens.read(message, 1);
    return parts.map((part, at) => ({ ...part, role, message, at }));
  });
}

/** What stands in the place of a part; undefined where it is there itself. */
export function placeholderOf({ kind, value, pieces }: CountedPart): string | undefined {
  const texts = pieces.map((piece) => ("text" in piece ? piece.text : ""));
  const text = kind === "tool_call" ? JSON.stringify(value) : texts.join("");
  return text.includes("[trimmed") ? text : undefined;
}
