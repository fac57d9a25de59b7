/** The parts of a phase file. */
export interface FrontMatter {
  readonly toml: string;
  /** The line of the file that the TOML begins on. 1-based. */
  readonly tomlLine: number;
  readonly body: string;
}

/** Why a file has no front matter. */
export interface NoFrontMatter {
  readonly line: number;
  readonly rule: "missing-front-matter" | "unclosed-front-matter";
  readonly message: string;
}

const delimiter = /^\+\+\+[ \t]*$/;

/** Splits at the first two lines that are `+++`; before the first one only white space may stand. A closing delimiter is a whole line, so
 *  that `+++` in a text of the front matter closes nothing. */
export function splitFrontMatter(text: string): FrontMatter | NoFrontMatter {
  // White space as JavaScript knows it includes the byte order mark.
  const start = text.search(/\S/);
  const line = lineAt(text, Math.max(start, 0));
  const opening = lineEnd(text, Math.max(start, 0));
  const first = start === -1 ? "" : text.slice(start, opening);
  if (!isDelimiter(first)) return missing(line, first.trim());
  for (let from = opening + 1; from <= text.length; ) {
    const end = lineEnd(text, from);
    if (isDelimiter(text.slice(from, end))) {
      return { toml: text.slice(opening + 1, from), tomlLine: line + 1, body: text.slice(end).trim() };
    }
    from = end + 1;
  }
  return {
    line,
    rule: "unclosed-front-matter",
    message: 'the front matter that begins here has no end: close it with a line that is "+++"',
  };
}

function missing(line: number, first: string): NoFrontMatter {
  const message =
    first === "---"
      ? 'the front matter must be TOML between two lines that are "+++", as title = "…": what begins here with "---" is YAML'
      : 'no front matter: a phase file begins with a line that is "+++", then TOML with id and title';
  return { line, rule: "missing-front-matter", message };
}

/** Where the line break stands, or the text ends. */
function lineEnd(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end === -1 ? text.length : end;
}

function isDelimiter(line: string): boolean {
  return delimiter.test(line.endsWith("\r") ? line.slice(0, -1) : line);
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}
