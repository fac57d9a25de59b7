import { nameMessage } from "../../core/messages/index.ts";
import { createHashKey, createKeyedHash, createOriginalId, type KeyedHash } from "../../core/text/index.ts";
import type { TrackedMessage } from "./tracked-history.ts";

/** All decisions of a conversation, append-only. An epoch belongs to the history on which it was decided: it applies to
 *  every history that contains its message `at`, identified by the hash of everything up to it. So a rewind or a fork
 *  gets the decisions of its own past, and a return to the longer history gets that history's decisions again. */
export interface DecisionLog {
  /** The key of the hashes in `epochs`. It is random, so that no text can be made to look like another one. Absent in
   *  the log of an earlier version. */
  readonly key?: string | undefined;
  readonly epochs: readonly Epoch[];
}

/** One pass that moved the boundary. Each costs one cache break. */
export interface Epoch extends Boundary {
  /** The message with which the history became too large. Never before `reach`. */
  readonly at: Anchor;
  /** The last message that the epoch concerns. */
  readonly reach: Anchor;
  /** The index of the epoch that applied when this one was decided. Absent for the first one. */
  readonly after?: number;
  /** The index of an epoch of another history. Its entries apply first, then `entries`. */
  readonly like?: number;
  /** The factor on the working budget from here on. Absent: 1. */
  readonly growth?: number;
  readonly entries: readonly LoggedDecision[];
}

export interface Boundary {
  /** The index up to which the history is trimmed. */
  readonly boundary: number;
  /** The index up to which whole exchanges are removed. No later epoch changes anything before it. */
  readonly collapsed: number;
}

export interface LoggedDecision {
  /** The id for `recall`. */
  readonly id: string;
  readonly message: number;
  readonly chain: string;
  /** The index of the part in its message. */
  readonly part: number;
  readonly decision: Decision;
  readonly tokensSaved: number;
}

/** Identifies a message by its index and the hash of everything up to it. */
export interface Anchor {
  readonly message: number;
  readonly chain: string;
}

/** What happens to a part. `replace` puts `text` in its place. In the input of a call it keeps fields whose JSON has at
 *  most `keeps` characters, and to a result it adds the `digest`. `shorten` keeps the first `head` and the last `tail`
 *  characters. Two decisions are about a whole message: `stub` replaces it with an assistant text, and `detach` keeps
 *  its text without references to removed content. */
export type Decision =
  | { readonly action: "replace"; readonly text: string; readonly keeps?: number; readonly digest?: string }
  | { readonly action: "drop" }
  | { readonly action: "detach" }
  | { readonly action: "stub"; readonly text: string }
  | { readonly action: "shorten"; readonly head: number; readonly tail: number };

export type ReplaceDecision = Extract<Decision, { action: "replace" }>;

/** Looks up epochs by the message from which they apply. Epochs are named by their index. */
export interface DecisionIndex {
  readonly ledger: DecisionLog;
  /** Hashes messages with the key of the log. */
  readonly hash: KeyedHash;
  /** The number of epochs that changed something. */
  readonly rewrites: number;
  /** Returns the index of the epoch. */
  add(epoch: Epoch): number;
  /** Returns the last epoch that applies from this message on. */
  epochAt(anchor: Anchor): number | undefined;
  /** Returns the epochs from `base` (exclusive; undefined is the start) to `epoch`, oldest first, or undefined if
   *  `epoch` is not based on `base`. */
  pathTo(epoch: number, base: number | undefined): readonly number[] | undefined;
  /** Counts the epochs from the start to `epoch` that were needed at this message or later. */
  countSince(epoch: number, message: number): number;
  /** Returns all entries of an epoch, including those that it adopted from another history. */
  entriesOf(epoch: number): readonly LoggedDecision[];
  /** Returns the epochs that were decided on top of this one, each in its own history. */
  decidedAfter(epoch: number | undefined): readonly number[];
  entry(id: string): LoggedDecision | undefined;
  /** Returns the id of a part. It depends on nothing but the session and the message, so that every process gives the
   *  same one. A message of a provider has ids that no file knows, so nobody can guess it. */
  createId(message: TrackedMessage, part: Pick<LoggedDecision, "message" | "part">): string;
}

/** `names` are names of messages that other logs of the same recording have already computed. */
export function createDecisionIndex(
  sessionId: string,
  ledger: DecisionLog = { epochs: [] },
  names: WeakMap<object, string> = new WeakMap(),
): DecisionIndex {
  const { key = createHashKey() } = ledger;
  const epochs: Epoch[] = [];
  const byAnchor = new Map<string, number>();
  const byBase = new Map<number | undefined, number[]>();
  /** For each epoch the latest message that it or an epoch before it was needed at. */
  const latest: number[] = [];
  let rewrites = 0;
  const add = (epoch: Epoch): number => {
    const index = epochs.push(epoch) - 1;
    latest.push(Math.max(epoch.at.message, latest[epoch.after ?? -1] ?? 0));
    // A damaged or hand-made checkpoint may contradict itself.
    if (isSound(epoch, index)) {
      byAnchor.set(epoch.at.chain, index);
      const others = byBase.get(epoch.after);
      if (others === undefined) byBase.set(epoch.after, [index]);
      else others.push(index);
    }
    if (epoch.entries.length > 0 || epoch.like !== undefined) rewrites++;
    return index;
  };
  for (const epoch of ledger.epochs) add(epoch);
  const entriesOf = (index: number): readonly LoggedDecision[] => {
    const { like, entries } = epochs[index] as Epoch;
    return like === undefined ? entries : [...entriesOf(like), ...entries];
  };
  return {
    ledger: { key, epochs },
    hash: createKeyedHash(key),
    get rewrites() {
      return rewrites;
    },
    add,
    epochAt({ message, chain }) {
      const index = byAnchor.get(chain);
      return index !== undefined && epochs[index]?.at.message === message ? index : undefined;
    },
    pathTo(epoch, base) {
      const path: number[] = [];
      let index: number | undefined = epoch;
      for (; index !== undefined && index !== base; index = epochs[index]?.after) path.push(index);
      return index === base ? path.reverse() : undefined;
    },
    countSince(epoch, message) {
      let count = 0;
      // A history that never fits has an epoch for each call. Only the newest ones matter.
      for (let index: number | undefined = epoch; index !== undefined; index = epochs[index]?.after) {
        if ((latest[index] as number) < message) break;
        if ((epochs[index] as Epoch).at.message >= message) count++;
      }
      return count;
    },
    entriesOf,
    decidedAfter: (epoch) => byBase.get(epoch) ?? [],
    entry: (id) => epochs.flatMap(({ entries }) => entries).findLast((entry) => entry.id === id),
    createId({ source, original }, { message, part }) {
      const name = names.get(original) ?? nameMessage(source);
      names.set(original, name);
      return createOriginalId(["history", sessionId, message, name, part]);
    },
  };
}

/** An epoch may refer only to earlier epochs, and only to messages up to the one from which it applies. */
function isSound({ at, reach, after, like, boundary, collapsed }: Epoch, index: number): boolean {
  if (Math.max(after ?? -1, like ?? -1) >= index) return false;
  return collapsed <= boundary && boundary - 1 <= reach.message && reach.message <= at.message;
}
