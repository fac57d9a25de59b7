/** Finds what an epoch of a replay removed: parts that were in the request, or are new, and that are not sent any more. */
import { type CountedPart, filesOf, inputOf, type Role } from "../messages/index.ts";
import type { MessageBlocks } from "./prepare-session.ts";

/** What one epoch removed. */
export interface Removal {
  readonly tokens: number;
  /** By tool, or by what else it was, largest first. */
  readonly kinds: readonly { readonly name: string; readonly count: number; readonly tokens: number }[];
  /** The largest parts, with what their call was about. */
  readonly largest: readonly { readonly name: string; readonly tokens: number }[];
}

export interface RemovalFinder {
  /** Takes the history and the request of the next call. Returns what an epoch removed, for the first epochs. */
  add(call: { given: readonly object[]; sent: readonly object[]; isEpoch: boolean }): Removal | undefined;
}

interface SentPart {
  readonly key: unknown;
  readonly tokens: number;
  readonly name: string;
  readonly subject: string;
}

const mostLargest = 5;
/** A policy that trims on every call of a long session has too many epochs to show, and finding all takes long. */
const mostEpochs = 400;

export function createRemovalFinder(blocksOf: (message: object) => MessageBlocks): RemovalFinder {
  const callsById = new Map<string, CountedPart>();
  // Only what is still sent, so that an epoch of a long session does not look at all of it.
  let standing: SentPart[] = [];
  let read = 0;
  let epochs = 0;
  const partsOf = ({ role, parts, blocks }: MessageBlocks): SentPart[] =>
    parts.map((part, index) => {
      if (part.kind === "tool_call" && part.callId !== undefined) callsById.set(part.callId, part);
      const call = part.kind === "tool_call" ? part : callsById.get(part.callId ?? "");
      const { key, tokens } = blocks[index] as MessageBlocks["blocks"][number];
      return { key, tokens, name: nameOf(part, { role, call }), subject: subjectOf(call) };
    });
  return {
    add({ given, sent, isEpoch }) {
      if (isEpoch) epochs++;
      if (epochs > mostEpochs) return undefined;
      const isFirst = read === 0;
      for (; read < given.length; read++) standing.push(...partsOf(blocksOf(given[read] as object)));
      if (!isEpoch && !isFirst) return undefined;
      const { kept, removed } = split(standing, countKeys(sent.flatMap((message) => blocksOf(message).blocks)));
      standing = kept;
      return isEpoch ? describe(removed) : undefined;
    },
  };
}

function countKeys(blocks: MessageBlocks["blocks"]): Map<unknown, number> {
  const counts = new Map<unknown, number>();
  for (const { key } of blocks) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

/** Splits parts into those that are sent and the others. The newest of equal parts stays. */
function split(parts: readonly SentPart[], counts: Map<unknown, number>): { kept: SentPart[]; removed: SentPart[] } {
  const removed: SentPart[] = [];
  const kept = parts.toReversed().filter((part) => {
    const left = counts.get(part.key) ?? 0;
    counts.set(part.key, left - 1);
    if (left <= 0) removed.push(part);
    return left > 0;
  });
  return { kept: kept.reverse(), removed };
}

function describe(removed: readonly SentPart[]): Removal {
  const kinds = new Map<string, { name: string; count: number; tokens: number }>();
  let total = 0;
  for (const { name, tokens } of removed) {
    const kind = kinds.get(name) ?? { name, count: 0, tokens: 0 };
    kinds.set(name, { name, count: kind.count + 1, tokens: kind.tokens + tokens });
    total += tokens;
  }
  const bySize = (left: { tokens: number }, right: { tokens: number }): number => right.tokens - left.tokens;
  const largest = removed.toSorted(bySize).slice(0, mostLargest);
  return {
    tokens: total,
    kinds: [...kinds.values()].sort(bySize),
    largest: largest.map(({ name, subject, tokens }) => ({ name: `${name} ${subject}`.trim(), tokens })),
  };
}

function nameOf(part: CountedPart, { role, call }: { role: Role; call: CountedPart | undefined }): string {
  if (part.kind === "tool_result") return call?.toolName ?? part.toolName ?? "result";
  if (part.kind === "tool_call") return `${part.toolName ?? "call"} input`;
  return part.kind === "thinking" ? "thinking" : `${role} ${part.kind}`;
}

const mostSubjectCharacters = 80;

/** Returns the file that a call names, or the first text of its input. */
function subjectOf(call: CountedPart | undefined): string {
  if (call === undefined) return "";
  const texts = Object.values(Object(inputOf(call)) as object).filter((value) => typeof value === "string");
  const subject = filesOf(call).path ?? texts[0] ?? "";
  return [...subject.replace(/\s+/g, " ").slice(0, 2 * mostSubjectCharacters)].slice(0, mostSubjectCharacters).join("");
}
