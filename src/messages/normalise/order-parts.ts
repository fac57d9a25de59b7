/** The order of what stands between two turns: results first, messages of the system last where a provider wants that. */
import type { Fields } from "../fields.ts";
import type { MessageFormat, Part } from "../message-format.ts";
import { dropParts } from "./tidy-messages.ts";

export interface OrderOptions {
  readonly format: MessageFormat;
  /** Before the first turn, where the system speaks first. */
  readonly isLeading: boolean;
}

/** The same list where the order is right. A message that has to be in two places becomes two. */
export function orderParts(
  messages: readonly Fields[],
  { format, isLeading }: OrderOptions,
): readonly Fields[] {
  const ranked: RankedMessage[] = [];
  let isStart = isLeading;
  for (const message of messages) {
    const { role, parts } = format.read(message, "message");
    isStart &&= role === "system";
    const others = role === "system" && !isStart && isSystemLast(format) ? ranks.system : ranks.other;
    const rankOf = (part: Part) => (role === "tool" || part.kind === "tool_result" ? ranks.result : others);
    ranked.push({ message, rankOf, ranks: parts.map(rankOf) });
  }
  const given = ranked.flatMap((each) => each.ranks);
  if (given.every((rank, index) => index === 0 || rank >= (given[index - 1] as number))) return messages;
  const ordered = Object.values(ranks).flatMap((rank) =>
    ranked.map(({ message, rankOf }) => dropParts(message, format, (part) => rankOf(part) !== rank)),
  );
  return ordered.filter((message) => message !== undefined);
}

/** Anthropic takes a message of the system only between the user's and the assistant's. */
export function isSystemLast(format: MessageFormat): boolean {
  return format.name === "anthropic";
}

interface RankedMessage {
  readonly message: Fields;
  readonly rankOf: (part: Part) => number;
  readonly ranks: readonly number[];
}

// Anthropic wants results first in a message, the others right behind the turn.
const ranks = { result: 0, other: 1, system: 2 } as const;
