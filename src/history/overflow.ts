/** Why a request cannot be made to fit. */
import type { CountedPart, MessageLens } from "../messages/index.ts";
import type { TrackedMessage } from "./tracked-history.ts";

export interface Excess {
  /** Size of the smallest valid request. */
  readonly tokens: number;
  readonly limit: number;
}

export interface Overflow extends Excess {
  /** What takes most of it, largest first. */
  readonly largest: readonly LargePart[];
}

export interface LargePart {
  /** Path in the messages that came in. */
  readonly path: string;
  readonly role: string;
  readonly kind: CountedPart["kind"];
  readonly tokens: number;
}

const named = 3;

export function describeOverflow(
  messages: readonly TrackedMessage[],
  excess: Excess,
  lens: MessageLens,
): Overflow {
  const largest: Place[] = [];
  for (const [index, { original, decisions, sent }] of messages.entries()) {
    if (sent === undefined) continue;
    for (const [part, { tokens }] of original.parts.entries()) {
      if (decisions.has(part) || tokens <= (largest[named - 1]?.tokens ?? 0)) continue;
      insert(largest, { index, part, tokens });
    }
  }
  return { ...excess, largest: largest.map((place) => describe(messages, place, lens)) };
}

interface Place {
  readonly index: number;
  readonly part: number;
  readonly tokens: number;
}

function insert(largest: Place[], place: Place): void {
  const smaller = largest.findIndex(({ tokens }) => tokens < place.tokens);
  largest.splice(smaller < 0 ? largest.length : smaller, 0, place);
  largest.length = Math.min(largest.length, named);
}

function describe(
  messages: readonly TrackedMessage[],
  { index, part, tokens }: Place,
  lens: MessageLens,
): LargePart {
  const { source } = messages[index] as TrackedMessage;
  // Read again: what is tracked may be of an equal object that came before this one.
  const { role, parts } = lens.read(source, index);
  const { kind, value } = parts[part] as CountedPart;
  return { path: `messages[${index}]${placeOf(value, source)}`, role, kind, tokens };
}

/** Where in its message the part stands; nothing where it is the message, or a text of its own. */
function placeOf(value: unknown, source: object): string {
  for (const [name, list] of Object.entries(source)) {
    const at = typeof value === "object" && Array.isArray(list) ? list.indexOf(value) : -1;
    if (at >= 0) return `.${name}[${at}]`;
  }
  return "";
}
