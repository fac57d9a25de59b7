/** Reads the output of `git blame --porcelain` line by line. */
import { createHash } from "node:crypto";
import { cutText } from "../../../text/index.ts";
import { decodeBytes } from "../../../workspace/index.ts";
import type { Window } from "../../frame/window.ts";
import { decodeLine, type Encoding } from "../../source/text-encoding.ts";

export interface BlamedLine {
  readonly line: number;
  readonly hash: string;
  readonly author: string;
  readonly date: string;
  readonly text: string;
}

export interface BlameReader {
  read(line: string): void;
  readonly authors: ReadonlySet<string>;
  newest(): string | undefined;
  version(): string;
}

const mostLineCharacters = 500;

/** A commit's author and date come only with its first line. See git-blame(1), "The porcelain format". */
export function createBlameReader(window: Window<BlamedLine>, encoding: Encoding): BlameReader {
  const commits = new Map<string, { author: string; date: string }>();
  const authors = new Set<string>();
  const version = createHash("sha1");
  let current = { hash: "", line: 0 };
  let newest: string | undefined;
  const commitOf = (hash: string) => {
    const known = commits.get(hash) ?? { author: "", date: "" };
    commits.set(hash, known);
    return known;
  };
  const finishLine = (text: string) => {
    const commit = commitOf(current.hash);
    authors.add(commit.author);
    if (newest === undefined || commit.date > newest) newest = commit.date;
    // One byte more than whole characters: UTF-16 has half of a line feed at one end.
    const start = decodeLine(text.slice(0, mostLineCharacters * 4 + 1), encoding);
    const cut = cutText(start, mostLineCharacters);
    const shownText = cut.omitted > 0 ? `${cut.text}…` : cut.text;
    const { hash, line } = current;
    window.offer(() => ({ line, hash: hash.slice(0, 8), ...commit, text: shownText }), shownText.length + 80);
  };
  return {
    read: (line) => {
      if (!isTime(line)) version.update(`${line}\n`, "latin1");
      const header = /^([\da-f]{40,64}) \d+ (\d+)/.exec(line);
      if (line.startsWith("\t")) finishLine(line.slice(1));
      else if (header !== null) current = { hash: header[1] ?? "", line: Number(header[2]) };
      else if (line.startsWith("author ")) commitOf(current.hash).author = decodeBytes(line.slice(7));
      else if (line.startsWith("author-time ")) commitOf(current.hash).date = dayOf(Number(line.slice(12)));
    },
    authors,
    newest: () => newest,
    version: () => version.digest("hex"),
  };
}

/** What is not committed yet has the present second as its time; a commit's own time is in its hash. */
function isTime(line: string): boolean {
  return /^(?:author|committer)-time /.test(line);
}

/** Commits can claim any time, also one that no calendar holds. */
function dayOf(seconds: number): string {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 10);
}
