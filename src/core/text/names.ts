const leastLength = 8;

/** What a character may be in a name. */
const other = 0;
const letter = 1;
/** A digit, an underscore or a slash: inside of a name it shows that this is no plain word. */
const mark = 2;
/** Likewise, but punctuation at the end of a name. */
const markNotLast = 3;
/** Likewise, and punctuation at the beginning, too. */
const markInside = 4;

/** By code unit, for all of them: a lookup without a condition is faster. */
const nameParts = new Uint8Array(65_536);
for (let code = 0; code < 128; code++) {
  const character = String.fromCharCode(code);
  if (/[A-Za-z]/.test(character)) nameParts[code] = letter;
  if (/[\d_/]/.test(character)) nameParts[code] = mark;
  if (/[.#@]/.test(character)) nameParts[code] = markNotLast;
  if (/[:-]/.test(character)) nameParts[code] = markInside;
}

/** Receives a name: where it starts and ends in the text, and a hash of 30 bits. */
type VisitName = (start: number, end: number, hash: number) => void;

/** Visits the identifiers, paths and other names in a text, in order, with repetitions. A name has at least 8 characters
 *  and is no plain word. Whole histories are read, so this is a loop: a regular expression takes several times as long,
 *  and most readers need only the hashes. */
export function visitNames(text: string, visit: VisitName): void {
  const { length } = text;
  let start = 0;
  while (start + leastLength <= length) {
    // From the end of the shortest name backwards: a character that is in no name rules out all starts before it.
    let at = start + leastLength - 1;
    while (at >= start && nameParts[text.charCodeAt(at)] !== other) at--;
    if (at >= start) {
      start = at + 1;
      continue;
    }
    let end = start + leastLength;
    while (end < length && nameParts[text.charCodeAt(end)] !== other) end++;
    visitRun(text, { start, end }, visit);
    start = end + 1;
  }
}

function kindAt(text: string, at: number): number {
  return nameParts[text.charCodeAt(at)] as number;
}

function visitRun(text: string, run: { start: number; end: number }, visit: VisitName): void {
  let { start, end } = run;
  while (start < end && kindAt(text, start) === markInside) start++;
  while (end > start && kindAt(text, end - 1) >= markNotLast) end--;
  if (end - start < leastLength) return;
  let isName = false;
  let isAfterLower = false;
  let hash = 0;
  // Of the hash FNV-1a.
  const hashFactor = 0x01_00_01_93;
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at);
    hash = Math.imul(hash ^ code, hashFactor);
    const isUpper = code >= 65 && code <= 90;
    isName ||= nameParts[code] !== letter || (isUpper && isAfterLower);
    isAfterLower = !isUpper && nameParts[code] === letter;
  }
  // Such a number is stored in place, not as an object.
  const hashMask = 0x3f_ff_ff_ff;
  if (isName) visit(start, end, (hash ^ (hash >>> 15)) & hashMask);
}
