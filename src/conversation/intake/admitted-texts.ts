/** The texts that this process has admitted and that the context still holds. Hashes find equal texts. If this process
 *  has the earlier text, the two texts are compared as well. */
import { readShape } from "./changing-fields.ts";
import type { HeldRange, HeldText } from "./held-texts.ts";
import { type IncomingCall, readFirstLine, readWrittenTexts } from "./read-call.ts";
import { type ResultLine, readComparedLines } from "./result-lines.ts";

export interface AdmittedTexts {
  /** Remembers the newest result of a context, and forgets those that the context no longer holds. */
  add(
    result: IncomingCall & { readonly text: string },
    context: { readonly sequence: number; readonly held: readonly HeldText[] },
  ): void;
  /** Returns whether an earlier result had exactly this text. Returns true if this process does not know the text of
   *  that result, because another process admitted it. */
  isSameText(held: HeldText, text: string): boolean;
  /** Returns whether the lines of each range are exactly those of its base. A base that this process does not know
   *  counts as equal, as in `isSameText`. */
  areSameLines(lines: readonly ResultLine[], ranges: readonly HeldRange[]): boolean;
}

export function createAdmittedTexts(): AdmittedTexts {
  const seen = new Map<number, IncomingCall & { readonly text: string }>();
  return {
    add({ tool, input, text }, { sequence, held }) {
      // Results arrive, and are held, in the order of their numbers.
      const oldest = held[0]?.sequence ?? sequence;
      for (const known of seen.keys()) {
        if (known >= oldest) break;
        seen.delete(known);
      }
      seen.set(sequence, { tool, input, text });
    },
    isSameText: ({ sequence }, text) => (seen.get(sequence)?.text ?? text) === text,
    areSameLines(lines, ranges) {
      // Few results become a base, so their lines are read only now.
      const bodiesByBase = new Map<HeldText, ReadonlyMap<number, string>[]>();
      return ranges.every(({ start, end, base, baseFrom, name: { sign }, differing }) => {
        const known = seen.get(base.sequence);
        if (known === undefined) return true;
        let bodies = bodiesByBase.get(base);
        if (bodies === undefined) {
          const texts =
            base.isWritten === true ? readWrittenTexts(known) : [readComparedLines(known.text, readFirstLine(known))];
          // Lines that the agent wrote are numbered from 1, even in a patch.
          const numberAt = (line: ResultLine, index: number): number =>
            base.isWritten === true ? index + 1 : line.number;
          bodies = texts.map((each) => new Map(each.map((line, index) => [numberAt(line, index), line.body])));
          bodiesByBase.set(base, bodies);
        }
        return bodies.some((byNumber) =>
          lines.slice(start, end).every(({ body }, index) => {
            const known = byNumber.get(baseFrom + index);
            if (differing !== undefined) return known !== undefined && readShape(known) === readShape(body);
            return known === (sign === undefined ? body : body.slice(1));
          }),
        );
      });
    },
  };
}
