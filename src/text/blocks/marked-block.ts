/**
 * Our own block in a person's file. Files are byte strings, so every byte outside the block survives, and what we add around
 * the block can be told from what was there: removing the block restores the file exactly.
 */
import { ContextError } from "../../errors.ts";
import {
  blockHash,
  canonicalBody,
  namedSections,
  type Span,
  searchMarkers,
  searchWholeBlocks,
} from "./block-markers.ts";
import { fromByteString, toByteString } from "./byte-string.ts";

export interface MarkedBlock {
  /** From the first character of the start marker to behind the last one of the end marker. */
  readonly start: number;
  readonly end: number;
  /** With LF line ends, whatever the file has. */
  readonly body: string;
  readonly hash: string | undefined;
  /** Its text is not what the hash was made of: a person changed it. */
  readonly edited: boolean;
}

export type BlockSearch =
  | { readonly kind: "none" }
  | { readonly kind: "block"; readonly block: MarkedBlock }
  | { readonly kind: "broken"; readonly line: number; readonly problem: string };

/** The block of a section. Markers inside code fences are text; markers that do not make exactly one block are `broken`. */
export function findBlock(file: string, section: string): BlockSearch {
  const found = searchMarkers(file, toByteString(section));
  if (found.kind !== "block") return found;
  const { start, end, bodyStart, bodyEnd, hash } = found.span;
  const body = canonicalBody(file.slice(bodyStart, bodyEnd));
  return { kind: "block", block: { start, end, body, hash, edited: hash !== blockHash(body) } };
}

/** The file with the block in it: in place where there is one, else at the end behind one empty line. `undefined` is a file that does not exist. */
export function putBlock(file: string | undefined, section: string, body: string): string {
  if (file === undefined) return `${renderBlock(section, body, "\n")}\n`;
  const span = spanOf(file, section);
  if (span !== undefined) {
    const block = renderBlock(section, body, lineEndAt(file, span));
    return file.slice(0, span.start) + block + file.slice(span.end);
  }
  const lineEnd = lineEndOf(file);
  const block = renderBlock(section, body, lineEnd);
  // An empty line above tells a file that was empty from one that we created.
  if (isBlank(file)) return file + lineEnd + block + lineEnd;
  // A file without a final line break gets none behind the block either: this is how removal knows.
  return file.endsWith("\n") ? file + lineEnd + block + lineEnd : file + lineEnd + lineEnd + block;
}

/** The file as it was before `putBlock`; `undefined` where we had created it, so it is to be deleted. */
export function removeBlock(file: string, section: string): { file: string | undefined } {
  const span = spanOf(file, section);
  return { file: span === undefined ? file : withoutSpan(file, span) };
}

/** The file without the blocks that are certainly ours and of these sections; `undefined` as for `removeBlock`. */
export function removeWholeBlocks(
  file: string,
  isMeant: (section: string) => boolean = () => true,
): string | undefined {
  if (![...namedSections(file)].some((section) => isMeant(fromByteString(section)))) return file;
  const meant = searchWholeBlocks(file).findLast(({ section }) => isMeant(fromByteString(section)));
  if (meant === undefined) return file;
  const rest = withoutSpan(file, meant);
  return rest === undefined ? undefined : removeWholeBlocks(rest, isMeant);
}

/** Gives the first block of ours the name of this section, where the file holds none of that name. Then a run goes on with the block
 *  that an adapter with another section left, and adds no second one. */
export function adoptBlock(file: string, section: string): string {
  const named = namedSections(file);
  const others = [...named].filter((name) => name !== toByteString(section));
  if (others.length === 0 || findBlock(file, section).kind !== "none") return file;
  const [block] = searchWholeBlocks(file);
  if (block === undefined) return file;
  const { start, bodyStart, bodyEnd, end } = block;
  const rename = (kind: "start" | "end", marker: string) =>
    marker.replace(`:${kind}:${block.section}`, () => `:${kind}:${toByteString(section)}`);
  const first = rename("start", file.slice(start, bodyStart));
  const last = rename("end", file.slice(bodyEnd, end));
  return file.slice(0, start) + first + file.slice(bodyStart, bodyEnd) + last + file.slice(end);
}

function withoutSpan(file: string, span: Span): string | undefined {
  const lineEnd = lineEndAt(file, span);
  const before = file.slice(0, span.start);
  const after = file.slice(span.end);
  // An editor may have added or taken the last line break of a file that we created.
  if (isBlank(before)) return after.trim() === "" ? undefined : before + withoutLeading(after, lineEnd);
  const empty = before.slice(0, -lineEnd.length);
  if (isBlank(empty) && after.trim() === "") return empty;
  if (after === "") return withoutTail(before, lineEnd + lineEnd);
  const rest = after.startsWith(lineEnd) ? after.slice(lineEnd.length) : after;
  return withoutSeparator(before, lineEnd) + rest;
}

function spanOf(file: string, section: string): Span | undefined {
  const found = searchMarkers(file, toByteString(section));
  if (found.kind === "broken") throw new ContextError("refused_target", found.problem, { line: found.line });
  return found.kind === "block" ? found.span : undefined;
}

function renderBlock(section: string, body: string, lineEnd: string): string {
  if (section === "" || /[\r\n]|--|^\s|\s$/.test(section)) {
    throw new ContextError("invalid_argument", `"${section}" cannot name a section of a file`);
  }
  const name = toByteString(section);
  const lines = canonicalBody(body);
  const hash = blockHash(lines);
  const text = `<!-- plimsoll:start:${name} sha256=${hash} -->\n${lines}<!-- plimsoll:end:${name} -->`;
  return lineEnd === "\n" ? text : text.replaceAll("\n", lineEnd);
}

/** The line end that the block itself was written with, so that what we added around it is recognised. */
function lineEndAt(file: string, { bodyStart }: Span): string {
  return file.slice(0, bodyStart).endsWith("\r\n") ? "\r\n" : "\n";
}

function lineEndOf(file: string): string {
  let feeds = 0;
  let pairs = 0;
  for (let at = file.indexOf("\n"); at !== -1; at = file.indexOf("\n", at + 1)) {
    feeds++;
    if (file.charCodeAt(at - 1) === 0x0d) pairs++;
  }
  return pairs * 2 > feeds ? "\r\n" : "\n";
}

/** Empty, or a byte order mark alone. */
function isBlank(text: string): boolean {
  return text === "" || text === "\xef\xbb\xbf";
}

/** Takes the empty line away that ends `before`. A person who moved the block may have left none. */
function withoutSeparator(before: string, lineEnd: string): string {
  const shorter = before.slice(0, -lineEnd.length);
  return before.endsWith(lineEnd) && (shorter.endsWith("\n") || isBlank(shorter)) ? shorter : before;
}

function withoutTail(text: string, tail: string): string {
  return text.endsWith(tail) ? text.slice(0, -tail.length) : text;
}

/** At the top of a file the line end of the block goes, and with another block of ours below it the separator of that. */
function withoutLeading(after: string, lineEnd: string): string {
  if (after.startsWith(`${lineEnd}${lineEnd}<!-- plimsoll:start:`)) return after.slice(2 * lineEnd.length);
  return after.startsWith(lineEnd) ? after.slice(lineEnd.length) : after;
}
