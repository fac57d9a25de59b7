/** What the store keeps of one context, and how it is read. */
import { createHashKey, createKeyedHash, type KeyedHash } from "../../core/text/index.ts";
import { type HeldText, type SentTurn, withoutLostNames } from "./held-texts.ts";
import type { EditedCall } from "./read-call.ts";

/** What the context holds, oldest first. */
export interface HeldContext {
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
  written(context: HeldContext): string;
  /** The result with this number was not sent as recorded. It no longer counts as held. */
  noteUnsent(sequence: number): void;
}

/** Without a store that others read, a context is not written as text: for thousands of short results, that would take
 *  most of the time. */
export function createContextReader({ isShared }: { readonly isShared: boolean }): ContextReader {
  let writes = 0;
  let known: { readonly value: string | undefined; readonly open: OpenContext } | undefined;
  const unsent = new Set<number>();
  const open = (context: HeldContext): OpenContext => {
    const hash = known?.open.context.key === context.key ? known.open.hash : createKeyedHash(context.key);
    return { context, hash };
  };
  return {
    parse(value) {
      if (known === undefined || known.value !== value) {
        const context = { ...nothing(), ...(value === undefined ? {} : readContext(JSON.parse(value))) };
        known = { value, open: open(context) };
      }
      return { ...known.open, context: withoutUnsent(known.open.context, unsent) };
    },
    written(context) {
      const sent = withoutUnsent(context, unsent);
      const value = isShared ? JSON.stringify(sent) : String(++writes);
      known = { value, open: open(sent) };
      return value;
    },
    noteUnsent: (sequence) => void unsent.add(sequence),
  };
}

export interface OpenContext {
  readonly context: HeldContext;
  readonly hash: KeyedHash;
}

/** What the agent wrote in their calls is in the context all the same. */
function withoutUnsent(context: HeldContext, unsent: ReadonlySet<number>): HeldContext {
  if (unsent.size === 0) return context;
  const isUnsent = ({ sequence, isWritten }: HeldText): boolean => isWritten !== true && unsent.has(sequence);
  if (!context.held.some(isUnsent)) return context;
  return { ...context, held: withoutLostNames(context.held.filter((text) => !isUnsent(text))) };
}

/** Earlier versions had no key. Their hashes cannot be compared with ours, so nothing counts as held. */
function readContext(context: HeldContext): Partial<HeldContext> {
  return context.key === undefined ? { sequence: context.sequence } : context;
}

function nothing(): HeldContext {
  const lastTurn = { first: 0, labels: [], unclear: [] };
  return { key: createHashKey(), sequence: 0, held: [], edited: [], lastTurn };
}
