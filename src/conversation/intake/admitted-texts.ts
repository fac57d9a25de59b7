/** The texts that this process has admitted and that the context still holds. Equal hashes alone never decide while the
 *  text itself is at hand: it is compared, too. */
import type { HeldRange, HeldText } from "./held-texts.ts";
import { type IncomingCall, writtenTexts } from "./read-call.ts";
import type { ResultLine } from "./result-lines.ts";

export interface AdmittedTexts {
  /** Remembers a result, and forgets those that the context no longer holds. */
  add(
    result: IncomingCall & { readonly text: string },
    of: {
      readonly lines: readonly ResultLine[] | undefined;
      readonly context: { readonly sequence: number; readonly held: readonly HeldText[] };
    },
  ): void;
  /** Returns whether a result had this text; true if it was admitted by another process. */
  isSameText(held: HeldText, text: string): boolean;
  /** Returns whether the ranges of lines are what their bases had, in the same way. */
  areSameLines(lines: readonly ResultLine[], ranges: readonly HeldRange[]): boolean;
}

interface AdmittedText {
  readonly text: string;
  /** The bodies by number: of the result, and of each text that the agent wrote in the call. */
  readonly shown: ReadonlyMap<number, string>;
  readonly written: readonly ReadonlyMap<number, string>[];
}

export function createAdmittedTexts(): AdmittedTexts {
  const seen = new Map<number, AdmittedText>();
  return {
    add(result, { lines = [], context: { sequence, held } }) {
      // Results come in the order of their numbers, and are held in it.
      const oldest = held[0]?.sequence ?? sequence;
      for (const known of seen.keys()) {
        if (known >= oldest) break;
        seen.delete(known);
      }
      seen.set(sequence, {
        text: result.text,
        shown: new Map(lines.map(({ number, body }) => [number, body])),
        written: writtenTexts(result).map((each) => new Map(each.map(({ body }, index) => [index + 1, body]))),
      });
    },
    isSameText: ({ sequence }, text) => (seen.get(sequence)?.text ?? text) === text,
    areSameLines: (lines, ranges) =>
      ranges.every(({ start, end, base, baseFrom, name: { sign } }) => {
        const known = seen.get(base.sequence);
        if (known === undefined) return true;
        const texts = base.isWritten === true ? known.written : [known.shown];
        return texts.some((bodies) =>
          lines.slice(start, end).every(({ body }, index) => {
            return bodies.get(baseFrom + index) === (sign === undefined ? body : body.slice(1));
          }),
        );
      }),
  };
}
