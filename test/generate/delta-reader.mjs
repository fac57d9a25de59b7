/** Puts shortened results together again, from nothing but what a model sees. It knows the newest line that a call showed
 *  under each number, and what was written in calls. Plain JavaScript, because the acceptance of plugins uses it, too. */

const note =
  /^\[[a-z2-7]{4} (unnumbered )?(\d+)(?:-(\d+))?(?:, all with "(.)")?(?:, there (\d+)(?:-\d+)?(?: of (\d+))?)?(?:, as (written )?in (.+))?\]$/;
const heading =
  /^\[([a-z2-7]{4}): Only new lines are shown\. Lines in brackets with \1 are as (?:last shown by (.+) above|you wrote them in (.+))\. Whole text/;

export function createDeltaReader({ readResultLines, unnumbered }) {
  const shown = new Map();
  const written = new Map();
  const whole = new Map();
  const linesFor = ({ label, isWritten }, { from, count, of }) => {
    const numbers = Array.from({ length: count }, (_, index) => from + index);
    if (!isWritten) return numbers.map((number) => shown.get(label)?.get(number) ?? `no line ${number}`);
    const text = written.get(label)?.findLast(({ length }) => length === Number(of ?? count)) ?? [];
    return of === undefined ? text : text.slice(from - 1, from - 1 + count);
  };
  const noted = (line, main) => {
    const [isNote, isOther, start, end = start, sign = "", there, of, inWritten, other] = note.exec(line) ?? [];
    if (isNote === undefined) return undefined;
    const name = other === undefined ? main : { label: other, isWritten: inWritten !== undefined };
    const from = Number(there ?? start) + (isOther === undefined ? 0 : unnumbered);
    return linesFor(name, { from, count: Number(end) - Number(start) + 1, of }).map((each) => `${sign}${each}`);
  };
  return {
    /** Returns the lines of the whole result, as `linesOf` returns those of the original; undefined if it is a page. */
    linesIn(text, original) {
      const strip = stripFor(original, readResultLines);
      const [first = "", ...rest] = text.split("\n");
      const same = /^\[[a-z2-7]{4}: Same text as the result of (.+) above/.exec(first)?.[1];
      if (same !== undefined) return (whole.get(same) ?? "").split("\n").map(strip);
      const [isDelta, mark, label, writtenIn] = heading.exec(first) ?? [];
      if (isDelta === undefined) return undefined;
      const main = { label: label ?? writtenIn, isWritten: writtenIn !== undefined };
      const isNote = (line) => line.startsWith(`[${mark} `);
      return rest.flatMap((line) => (isNote(line) ? (noted(line, main) ?? [line]) : [withoutQuote(strip(line))]));
    },
    /** Returns the lines of a result without numbers. A reader knows whether a tool writes them. */
    linesOf: (original) => original.split("\n").map(stripFor(original, readResultLines)),
    /** Takes a result that was put together, and the texts that its call wrote. */
    see(label, text, texts = []) {
      written.set(label, [...(written.get(label) ?? []), ...texts.map((each) => each.split("\n"))]);
      const known = shown.get(label) ?? new Map();
      for (const { number, body } of readResultLines(text)) known.set(number, body);
      shown.set(label, known);
      whole.set(label, text);
    },
  };
}

/** Words before a line say that it is text, although it looks like a note. */
function withoutQuote(line) {
  return line.replace(/^( *\d+[\t→:|])?\(text of this result\) /, "$1");
}

function stripFor(original, readResultLines) {
  const isNumbered = readResultLines(original).some(({ body, text }) => body !== text);
  return (line) => (isNumbered ? line.replace(/^ *\d+[\t→:|]/, "") : line);
}
