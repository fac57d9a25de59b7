/** List items and quotes, by CommonMark: what stands in one ends with it, code that no fence closes too. */

/** The containers that a line stands in, and where in the line what they hold begins. */
export interface Containers {
  /** Goes to the next line, behind the marks of the containers that go on in it. False where one does not. */
  enter(start: number, end: number): boolean;
  /** Opens those that begin here; false where none does. Not every mark may interrupt a paragraph. */
  open(isInParagraph: boolean): boolean;
  /** Ends those that did not go on. Not at once: a line may go on with a paragraph and leave the marks out. */
  endOthers(): void;
  /** The marks of a further line in all of them. */
  marks(): string;
  readonly place: Readonly<Place>;
}

export interface Place {
  readonly text: string;
  /** Of the line. */
  end: number;
  /** The first character behind all marks that is no blank; the end of the line where there is none. */
  at: number;
  /** Of that character. A tab has several columns, so this is no difference of places. */
  column: number;
  /** Columns up to where what the containers hold begins. */
  taken: number;
  /** No rule begins between here and `at`: or each bullet of a line of them would look at all the others. */
  noRuleBefore: number;
}

/** More than anybody writes: a text of nothing but marks must not cost their square. */
const mostContainers = 100;

export function createContainers(text: string): Containers {
  /** How far what an item holds is indented; 0 for a quote. */
  const widths: number[] = [];
  const place: Place = { text, end: 0, at: 0, column: 0, taken: 0, noRuleBefore: 0 };
  let goingOn = 0;
  let isEmptyItem = false;
  /** A quote ends at a blank line, and an item of which there is only the mark. */
  const goingOnInBlank = (from: number): number => {
    const quoteAt = widths.indexOf(0, from);
    if (quoteAt !== -1) return quoteAt;
    return isEmptyItem ? Math.max(from, widths.length - 1) : widths.length;
  };
  return {
    place,
    enter(start, end) {
      place.end = end;
      place.column = 0;
      place.taken = 0;
      skipBlanks(place, start);
      goingOn = 0;
      while (place.at < end && goingOn < widths.length && goesOn(place, widths[goingOn]!)) goingOn++;
      if (place.at === end) goingOn = goingOnInBlank(goingOn);
      isEmptyItem = false;
      return goingOn === widths.length;
    },
    open(isInParagraph) {
      let opened = false;
      while (place.at < place.end && goingOn < mostContainers && indentOf(place) < codeIndent) {
        const width = takeQuote(place) ? 0 : takeItem(place, isInParagraph && !opened);
        if (width === undefined) break;
        widths.length = goingOn;
        goingOn = widths.push(width);
        opened = true;
        isEmptyItem = width > 0 && place.at === place.end;
      }
      return opened;
    },
    endOthers() {
      widths.length = goingOn;
    },
    marks: () => widths.map((width) => (width === 0 ? "> " : " ".repeat(width))).join(""),
  };
}

/** In columns. What is indented that far is code, or goes on with a paragraph: no mark of anything. */
export const codeIndent = 4;

export function indentOf({ column, taken }: Place): number {
  return column - taken;
}

function skipBlanks(place: Place, from: number): void {
  const { text, end } = place;
  let { column } = place;
  let at = from;
  for (; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === tab) column += 4 - (column % 4);
    else if (code === space) column++;
    else break;
  }
  place.at = at;
  place.column = column;
}

function goesOn(place: Place, width: number): boolean {
  if (width === 0) return takeQuote(place);
  if (indentOf(place) < width) return false;
  place.taken += width;
  return true;
}

function takeQuote(place: Place): boolean {
  const { text, at } = place;
  if (text.charCodeAt(at) !== quote || indentOf(place) >= codeIndent) return false;
  const behind = ++place.column;
  skipBlanks(place, at + 1);
  // One blank belongs to the mark.
  place.taken = place.column > behind ? behind + 1 : behind;
  return true;
}

/** How far what the item holds is indented; undefined where there is none. */
function takeItem(place: Place, isInParagraph: boolean): number | undefined {
  const { text, at, end, taken } = place;
  const markEnd = listMarkEnd(text, at);
  if (markEnd === at || (markEnd < end && !isBlank(text.charCodeAt(markEnd)))) return undefined;
  if (isInParagraph && !mayInterrupt(text.slice(at, markEnd), text.slice(markEnd, end))) return undefined;
  if (isRule(place)) return undefined;
  place.column += markEnd - at;
  const behind = place.column;
  skipBlanks(place, markEnd);
  const blanks = place.column - behind;
  // What is further away than four columns is indented code, one column behind the mark.
  place.taken = behind + (place.at < end && blanks <= 4 ? blanks : 1);
  return place.taken - taken;
}

/** Behind a bullet or a number with its mark; the same place if there is none. */
export function listMarkEnd(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === dash || first === star || first === plus) return start + 1;
  let at = start;
  while (at - start < 9 && isDigit(text.charCodeAt(at))) at++;
  const isNumber = at > start && (text[at] === "." || text[at] === ")");
  return isNumber ? at + 1 : start;
}

/** Only an item that begins at 1 and holds something: a number or a dash may have come to the start of a line by chance. */
function mayInterrupt(mark: string, rest: string): boolean {
  return rest.trim() !== "" && (mark.length === 1 || Number(mark.slice(0, -1)) === 1);
}

/** Whether the line is a rule from here on: nothing but three or more marks of a kind, which may be bullets by their looks. */
export function isRule(place: Place): boolean {
  const { text, at, end } = place;
  const mark = text.charCodeAt(at);
  if (at < place.noRuleBefore || (mark !== dash && mark !== star && mark !== underscore)) return false;
  let marks = 0;
  let next = at;
  for (; next < end; next++) {
    const code = text.charCodeAt(next);
    if (code === mark) marks++;
    else if (!isBlank(code)) break;
  }
  if (next === end && marks >= 3) return true;
  place.noRuleBefore = next;
  return false;
}

const [tab, space, quote, star, plus, dash, underscore] = [0x09, 0x20, 0x3e, 0x2a, 0x2b, 0x2d, 0x5f];

export function isBlank(code: number): boolean {
  return code === space || code === tab;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}
