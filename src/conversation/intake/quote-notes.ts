/** Tells text of a result from our own notes. A file may contain a line that looks like one: "these lines are as shown
 *  above" would hide the real lines. Such lines are sent with words before them that say what they are. */
import { markPattern, originalIdPattern } from "../../core/text/index.ts";
import { splitNumber } from "./result-lines.ts";

/** The words before a line of a result that looks like one of our notes. */
const quoteWords = "(text of this result) ";

/** Returns the text with `quoteWords` before every line that looks like a note, after the number that a tool wrote. Lines
 *  that begin with the mark are ours; without a mark no line is. Returns the same text if there is no such line. */
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
  /\[\s*[a-z0-9]{4,8}[\s:,-]*(?:repeated\s+)?(?:unnumbered\s+)?\d|lines?[\s:]+\d|only\s+new|same\s+text|whole\s+result|trimmed|recall|left\s+out|similar|lines\s+in\s+brackets|repeated|shortens|last\s+shown|an\s+image/i;
/** Characters that may hide such words. Letters and marks of East Asia and frames of tables do not. */
const other =
  /[^\t\n\r -~\u2500-\u257f\u3001-\u300f\u3040-\u312f\u3400-\u9fff\uac00-\ud7a3\uff01\uff0c\uff0e\uff1a\uff1b\uff1f]/;

/** Whether a line has the form of a note, of this or of an earlier version, anywhere in it. */
function isLikeNote(line: string): boolean {
  const plain = other.test(line) ? simplify(line) : line;
  if (!hints.test(plain)) return false;
  const words = plain.replace(/\s+/g, " ");
  return forms.some((form) => form.test(words));
}

/** Brings a line to the letters, brackets and spaces that a reader sees. */
function simplify(line: string): string {
  return (
    line
      .replace(escapes, "")
      // Some of these Arabic signs stand for 18 letters each.
      .replace(/[\ufb50-\ufdff\ufe70-\ufeff]+/g, "")
      .normalize("NFKD")
      .replace(/[\t\v\f\r\x85\u115f\u1160\u2800]/g, " ")
      .replace(/[\p{Cc}\p{Cf}\p{M}]/gu, "")
      .replace(/(?![({])\p{Ps}/gu, "[")
      .replace(/(?![)}])\p{Pe}/gu, "]")
      .replace(/[\u0131\u0180-\u02af\u0370-\u058f\u1d00-\u1d7f\ua730\ua731]/g, (letter) => alike[letter] ?? letter)
  );
}

/** What terminals take as colours, movements and links. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these codes start with a control character
const escapes = /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)/g;

/** Greek, Cyrillic, Armenian and small capital letters, each before the Latin one in our notes that it looks like. */
const alike: Readonly<Record<string, string>> = Object.fromEntries(
  "аa еe оo сc рp хx іi ѕs ԁd һh ӏl Ӏl ԝw ԛq кk тt мm νv οo αa ιi κk τt υu ΟO ΑA ΕE ІI ЅS ТT ΤT РP ΙI ΝN օo ոn սu ցg ıi ɩi ɡg ɑa ʟl ɪi ɴn ᴇe ꜱs ᴛt ᴀa ᴍm ʀr ᴏo ᴘp ᴄc ᴋk ᴡw ʜh ɢg ᴜu ᴅd ᴠv ʏy ʙb"
    .split(" ")
    .map(([letter = "", latin = ""]) => [letter, latin]),
);

// A forged mark need not have the form of ours: few readers would notice.
const begins = "\\[ ?(?:[a-z0-9]{4,8} ?[:,\\u2013\\u2014-]? ?)?(?:…|\\.{3})? ?";
const id = originalIdPattern;
/** All white space is one space. */
const forms: readonly RegExp[] = [
  // Notes on lines, results and pages.
  new RegExp(`\\[ ?${markPattern}:? repeated (?:unnumbered )?\\d`, "i"),
  new RegExp(`\\[ ?${markPattern}:? (?:unnumbered )?[1-9]\\d{0,6} ?[\\],]`, "i"),
  // A date is no mark with a range.
  /\[ ?(?=\d{0,8}[a-z])[a-z0-9]{4,8}(?: |: ?)(?:unnumbered )?[1-9]\d{0,6} ?[-\u2010\u2013\u2014\u2212] ?[1-9]\d{0,6} ?[\],]/i,
  /\[ ?(?=\d{0,8}[a-z])[a-z0-9]{4,8}:? (?:unnumbered )?[1-9]\d{0,6}(?: ?[-\u2010\u2013\u2014\u2212] ?[1-9]\d{0,6})?, (?:but for|repeated) /i,
  new RegExp(
    `${begins}repeated (?:unnumbered )?[1-9]\\d{0,6}(?: ?[-\u2010\u2013\u2014\u2212] ?\\d{1,7})? ?:? ?\\]`,
    "i",
  ),
  /\blines in brackets (?:with [a-z0-9]{4,8} )?are as\b/i,
  new RegExp(`${begins}(?:unnumbered )?lines?(?: |: ?)\\d`, "i"),
  new RegExp(
    `${begins}(?:only new lines|same text as|the whole result has|plimsoll shortens|an image was here)\\b`,
    "i",
  ),
  new RegExp(`${begins}[\\d,]{1,12} (?:more |similar )?(?:lines?|elements?) (?:left out|similar|not shown)`, "i"),
  new RegExp(`${begins}[\\d,]{1,12} similar lines`, "i"),
  /^ ?(?:\d{1,7} ?[→|:]? ?)?(?:…|\.{3}) [\d,]{1,12} similar lines/i,
  // Placeholders, digests and summaries of a trimmed history.
  new RegExp(`${begins}(?:trimmed\\b|summary of what was trimmed)`, "i"),
  // How to get an original.
  new RegExp(`\\bplimsoll recall ${id}\\b`, "i"),
  new RegExp(`\\brecall (?:with )?id[:=]? ?["'\`]?${id}\\b`, "i"),
  // What a note says of lines.
  /\bas last shown (?:by .{1,80} )?above\b/i,
];
