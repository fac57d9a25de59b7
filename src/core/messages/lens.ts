/** Combines a message format and a counter: reads messages as counted parts, and edits parts without touching anything
 *  else. */

import { ContextError } from "../errors.ts";
import type { Fields } from "../text/index.ts";
import type { Counter } from "../tokens/index.ts";
import { type CountOptions, countPart, createCountContext, frameTokens, type SealedCounting } from "./count-parts.ts";

import { failAt, fieldsAt, typeName } from "./fields.ts";
import type { CallName, FormatName, Part, PartEdits, Role } from "./message-format.ts";

export interface MessageLens {
  readonly format: FormatName;
  /** The tokens of a request that are not in a message. */
  readonly requestTokens: number;
  /** Reads the message as counted parts. Errors name it `messages[index]`. Index 0 starts a conversation. */
  read(message: object, index: number): CountedMessage;
  /** Reads only whose message it is. */
  role(message: object, index: number): Role;
  /** Replaces or drops parts, named by their index in `parts`. Returns the same object if nothing changes, and
   *  undefined if no part is left. */
  edit(message: object, edits: PartEdits): object | undefined;
  /** Removes what ties the message's text to other content of the same answer. Returns the same object if nothing
   *  does. */
  detach(message: object): object;
  /** Merges two neighbours into one message. Returns undefined if the format needs them apart. */
  merge(first: object, second: object): object | undefined;
  assistantText(text: string): object;
  toolResult(call: CallName, text: string): object;
}

export interface CountedMessage {
  readonly role: Role;
  /** The tokens of frame, separators and parts. `countMessages` is the sum of these and `requestTokens`. */
  readonly tokens: number;
  readonly parts: readonly CountedPart[];
}

export interface CountedPart extends Part {
  readonly tokens: number;
  /** Set on a text of a user message that is read as a result (see `withFramedResults`). */
  readonly isFramed?: boolean | undefined;
}

/** Creates a lens for the given format, or for the format that `messages` show. */
export function createMessageLens(
  messages: readonly object[],
  options: CountOptions & {
    readonly counter: Counter;
    /** By default as billed. `readable` counts encrypted content by its readable text, for replaying recorded
     *  sessions. */
    readonly sealed?: SealedCounting | undefined;
  },
): MessageLens {
  if (!Array.isArray(messages)) return failAt("messages", `must be an array, not ${typeName(messages)}`);
  const { sealed } = options;
  if (sealed !== undefined && sealed !== "billed" && sealed !== "readable") {
    throw new ContextError("invalid_argument", `unknown value ${JSON.stringify(sealed)} for sealed`, {
      hint: "Use billed or readable.",
    });
  }
  const context = createCountContext(messages, options.counter, options);
  const { format, cache } = context;
  return {
    format: format.name,
    requestTokens: format.overheads.request,
    read(message, index) {
      if (index === 0) {
        cache.texts.restart();
        cache.args.restart();
      }
      const path = `messages[${index}]`;
      const reading = format.read(fieldsAt(message, path), path);
      let tokens = frameTokens(reading, format.overheads);
      const parts: CountedPart[] = [];
      for (const part of reading.parts) {
        // Field by field: a spread is several times slower, and this runs for every part of a parsed history.
        const counted = {
          kind: part.kind,
          pieces: part.pieces,
          value: part.value,
          callId: part.callId,
          toolName: part.toolName,
          isBound: part.isBound,
          exchangeRole: part.exchangeRole,
          tokens: countPart(part, context),
        };
        tokens += counted.tokens;
        parts.push(counted);
      }
      return { role: reading.role, tokens, parts };
    },
    role(message, index) {
      const path = `messages[${index}]`;
      return format.read(fieldsAt(message, path), path).role;
    },
    edit: (message, edits) => format.edit(message as Fields, edits),
    detach: (message) => format.detach(message as Fields),
    merge: (first, second) => format.merge(first as Fields, second as Fields),
    assistantText: format.assistantText,
    toolResult: format.toolResult,
  };
}

/** Returns a lens that reads each object once. For recordings: what a program sends may be edited in place. */
export function rememberReadings(lens: MessageLens): MessageLens {
  const known = new WeakMap<object, CountedMessage>();
  return {
    ...lens,
    read(message, index) {
      let read = known.get(message);
      if (read === undefined) {
        read = lens.read(message, index);
        known.set(message, read);
      }
      return read;
    },
  };
}
