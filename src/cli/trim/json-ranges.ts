/** Where values stand in a text of JSON, so that what stays can be copied as it was written: JSON.parse rounds long numbers and
 *  forgets spaces. The text must have been parsed before: mistakes are not looked for. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** The values in a row from `start` on: the elements of an array whose bracket is just before it, or JSON Lines. */
export function valueRanges(text: string, start: number): Range[] {
  const ranges: Range[] = [];
  for (let index = nextToken(text, start); ; ) {
    const end = valueEnd(text, index);
    if (end === index) return ranges;
    ranges.push({ start: index, end });
    index = nextToken(text, end);
  }
}

/** The value of a member of the object that the text holds; of the last one where a name comes twice, as JSON.parse has it. */
export function memberRange(text: string, name: string): Range | undefined {
  let found: Range | undefined;
  for (let index = nextToken(text, text.indexOf("{") + 1); text.startsWith('"', index); ) {
    const keyEnd = stringEnd(text, index);
    const start = nextToken(text, keyEnd);
    const end = valueEnd(text, start);
    if (JSON.parse(text.slice(index, keyEnd)) === name) found = { start, end };
    index = nextToken(text, end);
  }
  return found;
}

const filler = /[\s,:]*/y;
const scalar = /[^\s,:[\]{}"]*/y;

function nextToken(text: string, start: number): number {
  return endOf(filler, text, start);
}

/** `start` itself where no value begins. */
function valueEnd(text: string, start: number): number {
  const first = text[start];
  if (first === '"') return stringEnd(text, start);
  return first === "{" || first === "[" ? nestedEnd(text, start) : endOf(scalar, text, start);
}

const [quote, openList, closeList, openObject, closeObject] = [0x22, 0x5b, 0x5d, 0x7b, 0x7d];

function nestedEnd(text: string, start: number): number {
  let depth = 0;
  let index = start;
  do {
    const code = text.charCodeAt(index);
    if (code === openList || code === openObject) depth++;
    else if (code === closeList || code === closeObject) depth--;
    index = code === quote ? stringEnd(text, index) : index + 1;
  } while (depth > 0);
  return index;
}

function stringEnd(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text[end - 1 - escapes] === "\\") escapes++;
    if (escapes % 2 === 0) return end + 1;
  }
}

function endOf(pattern: RegExp, text: string, start: number): number {
  pattern.lastIndex = start;
  pattern.test(text);
  return pattern.lastIndex;
}
