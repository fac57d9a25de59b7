/** A message as it is read for the first time: counted, hashed, without decisions. */
import { ContextError } from "../errors.ts";
import { hashMessage, type MessageLens } from "../messages/index.ts";
import type { TrackedMessage } from "./tracked-history.ts";

interface Place {
  readonly index: number;
  readonly lens: MessageLens;
  /** Of the message before. */
  readonly chain: string;
}

export function readMessage(source: object, { index, lens, chain }: Place): TrackedMessage {
  const original = lens.read(source, index);
  const hash = hashAt(source, index);
  const { tokens } = original;
  return {
    source,
    hash,
    chain: hashMessage([chain, hash]),
    isPlain: isPlain(source),
    original,
    decisions: new Map(),
    sent: source,
    tokens,
    kept: tokens,
  };
}

export function hashAt(source: object, index: number): string {
  try {
    return hashMessage(source);
  } catch (cause) {
    // It knows the message alone, not its place.
    if (!(cause instanceof ContextError)) throw cause;
    throw new ContextError(cause.code, `messages[${index}]: ${cause.message}`, { cause });
  }
}

/** Whether the content is a text and not a list: the two hash alike and have other parts. What came in may be anything. */
export function isPlain(source: unknown): boolean {
  return typeof Object(source).content === "string";
}
