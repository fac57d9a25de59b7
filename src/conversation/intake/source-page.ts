/** Cuts printed source code to a page. In code, words do not show which line matters. So a page has continuous text:
 *  the beginning of each file, or the beginning of all of it and an outline of the rest. */
import { countLineParts, countNoun } from "../../core/text/index.ts";
import { largeText, type ResultPage, type ResultPageOptions } from "./page.ts";
import { type IncomingCall, isOutput } from "./read-call.ts";
import { type ResultLine, readResultLines } from "./result-lines.ts";

/** Whether a result is source code. Of a program's output, only what prints files can be. */
export function isSource(call: IncomingCall & { readonly text: string }): boolean {
  if (isOutput(call)) {
    const { command, cmd } = Object(call.input) as Readonly<Record<string, unknown>>;
    if (!printing.test([command ?? cmd].flat().join(" "))) return false;
  }
  const lines = readResultLines(call.text.slice(0, maxRead)).flatMap(({ body }) => (body.trim() === "" ? [] : body));
  return lines.length >= 20 && lines.filter((line) => code.test(line)).length >= lines.length * codeShare;
}

const printing = /(?:^|[;&|]|\bdo\b|-c|-lc)\s*["']?(?:cat|sed -n|head|tail|nl|bat|less|more|git show \S+:\S)\b/;
const maxRead = 20_000;
/** Comments and data stand between the code. */
const codeShare = 0.4;
const code =
  /[;{}]\s*$|^\s*(?:[})\]]+[,;)]*|(?:import|export|from|const|let|var|function|class|interface|type|enum|def|return|if|elif|else|for|while|try|catch|except|switch|case|func|fn|pub|impl|struct|use|package|public|private|protected|static|async|await|throw|raise|with|yield)\b.*|@\w+.*|#include.*)$/;

/** The share of a page that the outline may have. */
const outlineShare = 0.15;

/** Returns undefined if not even the notes fit. */
export function makeSourcePage(text: string, options: ResultPageOptions): ResultPage | undefined {
  const fitting = (text.length * options.maxTokens) / Math.max(1, options.resultTokens);
  let maxCharacters = Math.floor(Math.min(fitting, text.length));
  // No page has more than this.
  const lines = readResultLines(text.length > largeText ? text.slice(0, text.lastIndexOf("\n", largeText)) : text);
  const files = splitFiles(lines);
  for (let attempt = 0; attempt < 8 && maxCharacters > 0; attempt++) {
    const shown = { ...options, maxCharacters, unread: countLineParts(text) - lines.length };
    const page = files.length > 1 ? showFiles(files, shown) : showBeginning(lines, shown);
    const share = Math.max(page.tokens / options.maxTokens, options.shareOfLimit?.(page.text) ?? 0);
    if (share <= 1) return page.runs.length === 0 ? undefined : page;
    maxCharacters = Math.floor(maxCharacters * Math.min(0.95, 1 / share));
  }
  return undefined;
}

/** As `head`, `tail` and people's loops name files. */
const fileHeading = /^(?:==> .+ <==|[-=#*]{2,} ?[\w./@-]+\.\w{1,6} ?[-=#*:]*)$/;

function splitFiles(lines: readonly ResultLine[]): readonly (readonly ResultLine[])[] {
  const starts = lines.flatMap(({ body }, index) => (fileHeading.test(body) ? index : []));
  return [0, ...starts.filter((start) => start > 0)].map((start, index, all) => lines.slice(start, all[index + 1]));
}

interface PageSize extends ResultPageOptions {
  readonly maxCharacters: number;
  /** How many lines come after those that were read. */
  readonly unread: number;
}

function showFiles(
  files: readonly (readonly ResultLine[])[],
  { maxCharacters, unread, mark, about, counter }: PageSize,
): ResultPage {
  let left = maxCharacters;
  const runs = files.map((file, index) => {
    // Room that a short file does not need goes to the other files.
    const run = takeBeginning(file, left / (files.length - index));
    left -= run.reduce((sum, { text }) => sum + text.length + 1, 0);
    return run;
  });
  const written = runs.flatMap((run, index) => {
    const missing = (files[index]?.length ?? 0) - run.length + (index === runs.length - 1 ? unread : 0);
    const note = missing === 0 ? [] : [`[${mark}: … ${countNoun(missing, "line")} left out]`];
    return [...run.map(({ text }) => text), ...note];
  });
  const text = [...written, about].join("\n");
  return { text, tokens: counter.count(text), runs: runs.filter(({ length }) => length > 0) };
}

function showBeginning(
  lines: readonly ResultLine[],
  { maxCharacters, unread, mark, about, counter }: PageSize,
): ResultPage {
  const isNumbered = lines.some(({ text, body }) => text !== body);
  const name = ({ text, number }: ResultLine): string => (isNumbered ? text : `${number}: ${text}`);
  const run = takeBeginning(lines, maxCharacters * (1 - outlineShare));
  const rest = lines.slice(run.length);
  const declared = rest.filter(({ body }) => declaration.test(body)).map((line) => ({ ...line, text: name(line) }));
  const outline = takeBeginning(declared, maxCharacters * outlineShare);
  const missing = `${countNoun(rest.length + unread, "line")} left out`;
  const more = declared.length > outline.length ? `, up to ${outline.at(-1)?.number ?? 0}` : "";
  const note = `[${mark}: … ${missing}${outline.length === 0 ? "" : `. Declarations in them, with line numbers${more}:`}]`;
  const shown = [...run.map(({ text }) => text), note, ...outline.map(({ text }) => text), about];
  const text = shown.join("\n");
  return { text, tokens: counter.count(text), runs: run.length === 0 ? [] : [run] };
}

const declaration =
  /^(?: {0,4}|\t)(?:(?:export|default|pub(?:\(\w+\))?|public|private|protected|static|abstract|async|final)\s+)*(?:function\*?|class|interface|enum|def|func|fn|struct|impl|trait|module|namespace)\b|^(?:export\s+)?(?:const|type)\s+\w+/;

function takeBeginning<Line extends ResultLine>(lines: readonly Line[], maxCharacters: number): readonly Line[] {
  let left = maxCharacters;
  const end = lines.findIndex(({ text }) => {
    left -= text.length + 1;
    return left < 0;
  });
  return end < 0 ? lines : lines.slice(0, end);
}
