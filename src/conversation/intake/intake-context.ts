/** What the store keeps of one context, and how it is read. */
import { createHashKey, createKeyedHash, type KeyedHash } from "../../core/text/index.ts";
import { dropLostNames, type HeldText, type SentTurn } from "./held-texts.ts";
import type { EditedCall } from "./read-call.ts";

/** What the context holds, oldest first. */
export interface IntakeContext {
  /** The key of all hashes. It is random, so that no text can be made to look like another one. */
  readonly key: string;
  /** What ids and the mark are derived from: the id of the first call, which no file can know before. */
  readonly seed?: string | undefined;
  /** The number of results so far. */
  readonly sequence: number;
  readonly held: readonly HeldText[];
  /** The newest calls whose results were edited. */
  readonly edited: readonly EditedCall[];
  readonly lastTurn: SentTurn;
}

export interface ContextReader {
  /** Parses a context only if it is not the one that this process wrote last. */
  parse(value: string | undefined): OpenContext;
  /** Returns the context as text. */
  write(context: IntakeContext): string;
  /** The result with this number was not sent as recorded. It no longer counts as held. */
  noteUnsent(sequence: number): void;
}

/** Without a store that others read, a context is not written as text: for thousands of short results, that would take
 *  most of the time. */
export function createContextReader({ isShared }: { readonly isShared: boolean }): ContextReader {
  let writes = 0;
  let known: { readonly value: string | undefined; readonly open: OpenContext } | undefined;
  const unsent = new Set<number>();
  const open = (context: IntakeContext): OpenContext => {
    const hash = known?.open.context.key === context.key ? known.open.hash : createKeyedHash(context.key);
    return { context, hash };
  };
  return {
    parse(value) {
      if (known === undefined || known.value !== value) {
        const stored: Partial<IntakeContext> = value === undefined ? {} : JSON.parse(value);
        // Earlier versions had no key. Their hashes cannot be compared with ours, so nothing counts as held.
        const { sequence = 0 } = stored;
        const empty = { key: createHashKey(), sequence, held: [], edited: [], lastTurn: emptyTurn };
        const context = stored.key === undefined ? empty : { ...empty, ...stored };
        known = { value, open: open(context) };
      }
      return { ...known.open, context: dropUnsent(known.open.context, unsent) };
    },
    write(context) {
      const sent = dropUnsent(context, unsent);
      const value = isShared ? JSON.stringify(sent) : String(++writes);
      known = { value, open: open(sent) };
      return value;
    },
    noteUnsent: (sequence) => void unsent.add(sequence),
  };
}

export interface OpenContext {
  readonly context: IntakeContext;
  readonly hash: KeyedHash;
}

/** Drops results that were not sent, but keeps what the agent wrote in their calls. */
function dropUnsent(context: IntakeContext, unsent: ReadonlySet<number>): IntakeContext {
  if (unsent.size === 0) return context;
  const isUnsent = ({ sequence, isWritten }: HeldText): boolean => isWritten !== true && unsent.has(sequence);
  if (!context.held.some(isUnsent)) return context;
  return { ...context, held: dropLostNames(context.held.filter((text) => !isUnsent(text))) };
}

const emptyTurn = { first: 0, labels: [], unclear: [] };
