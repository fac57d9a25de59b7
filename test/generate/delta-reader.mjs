/** Puts shortened results together again, from nothing but what a model sees. It knows the newest line that a call showed
 *  under each number, and what was written in calls. Of lines that a note only calls alike it knows the shape. Plain
 *  JavaScript, because the acceptance of plugins uses it, too. */

const numbers = String.raw`(unnumbered )?(\d+)(?:-(\d+))?`;
const repeated = String.raw`repeated (?:unnumbered )?\d+(?:-\d+)?:`;
const note = new RegExp(
  String.raw`^\[[a-z2-7]{4} ${numbers}(?:, all with "(.)")?(?:, there (\d+)(?:-\d+)?(?: of (\d+))?)?` +
    String.raw`(?:, but for ((?:, )?(?:times|durations|ids|counters|colours))+)?(?:, as (written )?in (.+?))?(?:, ${repeated})?\]$`,
);
const onlyRepeated = new RegExp(String.raw`^\[[a-z2-7]{4} ${repeated}\]$`);
const heading =
  /^\[([a-z2-7]{4}): Only new lines are shown(?:, and failures again)?(?:, split at \\n in strings)?\. Lines in brackets with \1 are as (?:last shown by (.+) above|you wrote them in (.+?))(?:, before these calls)?\. Whole text/;
/** Before the shape of a line of which no more is known. */
const alike = "\u0000alike: ";

export function createDeltaReader({ readResultLines, unnumbered, readShape }) {
  const shown = new Map();
  const written = new Map();
  const whole = new Map();
  const linesFor = ({ label, isWritten }, { from, count, of }) => {
    const numbers = Array.from({ length: count }, (_, index) => from + index);
    if (!isWritten) return numbers.map((number) => shown.get(label)?.get(number) ?? `no line ${number}`);
    const text = written.get(label)?.findLast(({ length }) => length === Number(of ?? count)) ?? [];
    return of === undefined ? text : text.slice(from - 1, from - 1 + count);
  };
  const shapeOf = (line) => (line.startsWith(alike) ? line : alike + readShape(line));
  const noted = (line, main) => {
    if (onlyRepeated.test(line)) return [];
    const [isNote, isOther, start, end = start, sign = "", there, of, differing, inWritten, other] =
      note.exec(line) ?? [];
    if (isNote === undefined) return undefined;
    const name = other === undefined ? main : { label: other, isWritten: inWritten !== undefined };
    const from = Number(there ?? start) + (isOther === undefined ? 0 : unnumbered);
    const lines = linesFor(name, { from, count: Number(end) - Number(start) + 1, of });
    if (differing !== undefined) return lines.map(shapeOf);
    // Such a note says that the lines are the same, and a reader does not know them.
    return lines.map((each) => (each.startsWith(alike) ? `unknown ${each}` : `${sign}${each}`));
  };
  const strip = (original, first) => {
    const isInStrings = readResultLines(original).some(({ body }) => body.startsWith("\0"));
    if (isInStrings) return (line) => (/^(?:[^"\\]|\\.)*$/.test(line) ? JSON.parse(`"${line}"`) : line);
    const isNumbered = readResultLines(original, first).some(({ body, text }) => body !== text);
    const number = /^<path>.*\n<type>file/.test(original) ? /^\d+: / : /^ *\d+[\t→:|]/;
    return (line) => (isNumbered ? line.replace(number, "") : line);
  };
  return {
    /** Returns the lines of the whole result, as `linesOf` returns those of the original; undefined if it is a page. */
    linesIn(text, original) {
      const plain = strip(original);
      const [first = "", ...rest] = text.split("\n");
      const same = /^\[[a-z2-7]{4}: Same text as the result of (.+) above/.exec(first)?.[1];
      if (same !== undefined) return (whole.get(same) ?? "").split("\n").map(plain);
      const [isDelta, mark, label, writtenIn] = heading.exec(first) ?? [];
      if (isDelta === undefined) return undefined;
      const main = { label: label ?? writtenIn, isWritten: writtenIn !== undefined };
      const isNote = (line) => line.startsWith(`[${mark} `);
      return rest.flatMap((line) => (isNote(line) ? (noted(line, main) ?? [line]) : [plain(withoutQuote(line))]));
    },
    /** Returns the lines of a result without numbers: a reader knows whether a tool writes them. Of lines that are only
     *  alike in `lines` it returns the shape. */
    linesOf: (original, lines = []) =>
      readResultLines(original)
        .map(({ text }) => strip(original)(text))
        .map((line, index) => (lines[index]?.startsWith(alike) ? shapeOf(line) : line)),
    /** Takes a result that was put together, and the texts that its call wrote. `lines` is what `linesIn` returned, and
     *  `first` the number of the first line. */
    see(label, text, texts = [], { lines = [], first } = {}) {
      written.set(label, [...(written.get(label) ?? []), ...texts.map((each) => each.split("\n"))]);
      const known = shown.get(label) ?? new Map();
      for (const [index, { number, body }] of readResultLines(text, first).entries())
        known.set(number, lines[index]?.startsWith(alike) ? lines[index] : body.replace(/^\0/, ""));
      shown.set(label, known);
      whole.set(label, text);
    },
  };
}

/** Words before a line say that it is text, although it looks like a note. */
function withoutQuote(line) {
  return line.replace(/^( *\d+[\t→:|])?\(text of this result\) /, "$1");
}
