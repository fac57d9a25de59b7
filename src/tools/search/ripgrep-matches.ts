/** Reads the matches of files whose number of matches is known. */
import { type StartedProcess, splitRecords } from "../frame/start-process.ts";
import { createMatchCollector, type Match, type SearchedLine } from "./match.ts";
import type { CountedFile } from "./ripgrep-search.ts";

export interface MatchRange {
  readonly offset: number;
  readonly maxResults: number;
  readonly contextLines: number;
}

/** Few files are read ahead: a page seldom takes more. */
const matchesAtOnce = 100;
const filesAtOnce = 50;

/** `start` takes the arguments before the pattern. Matches before `offset` are passed over file by file. */
export async function* readMatches(
  start: (args: readonly string[], paths: readonly string[]) => StartedProcess,
  files: readonly CountedFile[],
  { offset, maxResults, contextLines }: MatchRange,
): AsyncGenerator<Match> {
  let { skip, at } = firstFile(files, offset);
  let left = maxResults;
  while (at < files.length && left > 0) {
    const end = endOfBatch(files, at);
    const paths = files.slice(at, end).map(({ path }) => path);
    const args = ["--json", "--threads=1", `--context=${contextLines}`];
    for await (const match of parseMatches(start(args, paths), contextLines)) {
      if (skip-- > 0) continue;
      yield match;
      if (--left === 0) return;
    }
    at = end;
  }
}

function firstFile(files: readonly CountedFile[], offset: number): { skip: number; at: number } {
  let skip = offset;
  let at = 0;
  for (; at < files.length && skip >= (files[at]?.count ?? 0); at++) skip -= files[at]?.count ?? 0;
  return { skip, at };
}

function endOfBatch(files: readonly CountedFile[], start: number): number {
  let matches = 0;
  let end = start;
  while (end < files.length && end < start + filesAtOnce && matches < matchesAtOnce) {
    matches += files[end++]?.count ?? 0;
  }
  return end;
}

interface Event {
  readonly type: "begin" | "match" | "context" | "end" | "summary";
  readonly data: {
    readonly path: Encoded;
    readonly lines: Encoded;
    readonly line_number: number;
    readonly submatches: readonly { readonly start: number }[];
  };
}

/** What is not UTF-8 comes as base64. */
type Encoded = { readonly text: string } | { readonly bytes: string };

async function* parseMatches(process: StartedProcess, contextLines: number): AsyncGenerator<Match> {
  let collector = createMatchCollector("", contextLines);
  for await (const batch of splitRecords(process.output, "\n")) {
    for (const record of batch) {
      const { type, data }: Event = JSON.parse(Buffer.from(record, "latin1").toString("utf8"));
      if (type === "begin") {
        collector = createMatchCollector(decode(data.path).text.replace(/^\.\//, ""), contextLines);
      } else if (type === "match" || type === "context") yield* collector.add(lineOf(data, type));
      else if (type === "end") yield* collector.end();
    }
  }
}

function lineOf({ lines, line_number, submatches }: Event["data"], type: string): SearchedLine {
  const { text, encoding } = decode(lines);
  const bytes = submatches[0]?.start ?? 0;
  // Offsets are in bytes. Only a long line is cut at the match.
  const at = bytes === 0 ? 0 : Buffer.from(text, encoding).subarray(0, bytes).toString(encoding).length;
  return { number: line_number, text: text.replace(/\r?\n$/, ""), at: type === "match" ? at : undefined };
}

function decode(value: Encoded): { text: string; encoding: "utf8" | "latin1" } {
  if ("text" in value) return { text: value.text, encoding: "utf8" };
  return { text: Buffer.from(value.bytes, "base64").toString("latin1"), encoding: "latin1" };
}
