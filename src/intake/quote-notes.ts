/** Tells text of a result from our own notes. A file may contain a line that looks like one: "these lines are as shown
 *  above" would hide what really stands there. Such lines are sent with words before them that say what they are. */
import { markPattern, originalIdPattern } from "../text/index.ts";
import { splitNumber, withoutColours } from "./result-lines.ts";

/** Stands before a line that looks like one of our notes and is text of the result. */
const quoteWords = "(text of this result) ";

/** Returns the text with `quoteWords` before every line that looks like a note and does not begin with the mark, after
 *  the number that a tool wrote. Without a mark, none of the notes are ours. Returns the same text if there is no such
 *  line. */
export function quoteNotes(text: string, mark: string | undefined): string {
  if (!hints.test(text) && !other.test(text)) return text;
  const own = mark === undefined ? [] : [`[${mark}: `, `[${mark} `];
  const lines = text.split("\n");
  let isChanged = false;
  for (const [index, line] of lines.entries()) {
    if (own.some((start) => line.startsWith(start)) || !isLikeNote(line)) continue;
    const [number, body] = splitNumber(line);
    lines[index] = number + quoteWords + body;
    isChanged = true;
  }
  return isChanged ? lines.join("\n") : text;
}

/** Words without which no line looks like a note. One search in the whole text is much faster than one in each line. */
const hints =
  /\[[a-z2-7]{4} |lines? +\d|only new|same text|whole result|trimmed|recall|left out|similar|shortens|last shown|an image/i;
/** Characters that may hide such words. Those of Western Europe and East Asia and frames of tables do not. */
const other = /[^\t\n\r -~À-ÿ\u2500-\u257f\u3040-\u9fff\uac00-\ud7a3]/;

/** Whether a line has the form of a note, of this or of an earlier version, anywhere in it. */
function isLikeNote(line: string): boolean {
  // A longer line is data, and no note has that length.
  if (line.length > longestLine) return forms.some((form) => form.test(line));
  const plain = other.test(line) ? plainForm(line) : line;
  return forms.some((form) => form.test(plain));
}

const longestLine = 4_000;

/** Brings a line to the letters, brackets and spaces that a reader sees. */
function plainForm(line: string): string {
  return withoutColours(line)
    .normalize("NFKD")
    .replace(/[\p{Cc}\p{Cf}\p{M}]/gu, "")
    .replace(/[【〔〚⟦⁅]/g, "[")
    .replace(/[】〕〛⟧⁆]/g, "]")
    .replace(/[\u0370-\u052f]/g, (letter) => alike[letter] ?? letter);
}

/** Greek and Cyrillic letters, each before the Latin one in our notes that it looks like. */
const alike: Readonly<Record<string, string>> = Object.fromEntries(
  "аa еe оo сc рp хx іi ѕs ԁd һh νv οo αa ιi ΟO ΑA ΕE ІI ЅS ТT ΤT РP"
    .split(" ")
    .map(([letter = "", latin = ""]) => [letter, latin]),
);

const begins = `\\[\\s{0,9}(?:${markPattern}:?\\s{1,9})?(?:…|\\.{3})?\\s{0,9}`;
const id = originalIdPattern;
const forms: readonly RegExp[] = [
  // Notes on lines, results and pages.
  new RegExp(`\\[${markPattern}\\s{1,9}(?:unnumbered\\s{1,9})?\\d+(?:-\\d+)?(?:\\]|,)`, "i"),
  new RegExp(`${begins}(?:unnumbered\\s{1,9})?lines?\\s{1,9}\\d`, "i"),
  new RegExp(
    `${begins}(?:only new lines|same text as|the whole result has|plimsoll shortens|an image was here)\\b`,
    "i",
  ),
  new RegExp(
    `${begins}[\\d,]{1,12}\\s{1,9}(?:more |similar )?(?:lines?|elements?)\\s{1,9}(?:left out|similar|not shown)`,
    "i",
  ),
  new RegExp(`${begins}[\\d,]{1,12}\\s{1,9}similar lines`, "i"),
  /^\s*… [\d,]{1,12} similar lines/i,
  // Placeholders, digests and summaries of a trimmed history.
  new RegExp(`${begins}(?:trimmed\\b|summary of what was trimmed)`, "i"),
  // How to get an original.
  new RegExp(`\\bplimsoll\\s{1,9}recall\\s{1,9}${id}\\b`, "i"),
  new RegExp(`\\brecall\\s{1,9}(?:with\\s{1,9})?id[:=]?\\s{0,9}["'\`]?${id}\\b`, "i"),
  // What a note says of lines.
  /\bas last shown (?:by .{1,80} )?above\b/i,
];
