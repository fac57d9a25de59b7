import { createHash } from "node:crypto";
import { realpath } from "node:fs/promises";
import { relative, sep } from "node:path";
import type { BudgetedTool, ToolFailure, ToolResult } from "../../session/index.ts";
import { decodeBytes, type ProcessEnd, splitRecords } from "../../workspace/index.ts";
import { containExisting, type ExistingPath, shown } from "../frame/contained-path.ts";
import { defineTool, type ToolValues } from "../frame/define-tool.ts";
import { failure, isFailure } from "../frame/failure.ts";
import { fileSize } from "../frame/phrases.ts";
import { lateWarning, type Place, type Run } from "../frame/run.ts";
import { createWindow, type Window } from "../frame/window.ts";
import { openRegular, sampleEncoding } from "../read/sample-file.ts";
import { decodeLine, type Encoding } from "../read/text-encoding.ts";
import { compressBlame } from "./compress-blame.ts";
import { gitFailure, startGit } from "./git.ts";

export interface BlamedLine {
  readonly line: number;
  readonly hash: string;
  readonly author: string;
  readonly date: string;
  readonly text: string;
}

const parameters = {
  path: { type: "string", description: "File whose lines are asked about.", required: true },
  start_line: { type: "integer", description: "First line, from 1.", default: 1, minimum: 1 },
  end_line: { type: "integer", description: "Last line. Default: the last one of the file.", minimum: 1 },
} as const;

export function createVcsBlame(place: Place): BudgetedTool {
  return defineTool(
    {
      name: "vcs_blame",
      description: "Show for each line of a file who changed it last, when, and in which commit.",
      parameters,
      compress: compressBlame,
      run: blameLines,
    },
    place,
  );
}

async function blameLines(
  values: ToolValues<typeof parameters>,
  run: Run,
): Promise<ToolResult | ToolFailure> {
  const { start_line, end_line = start_line } = values;
  if (end_line < start_line) {
    return failure("invalid_argument", `end_line ${end_line} lies before start_line ${start_line}.`);
  }
  const contained = await containExisting(run.root, values.path);
  if (isFailure(contained)) return contained;
  if (!contained.stats.isFile()) return failure("unreadable", `${shown(values.path)} is no file.`);
  const encoding = await encodingOf(contained);
  if (encoding === "binary") return describeBinary(contained, values.offset);
  const real = relative(await realpath(run.root), contained.real)
    .split(sep)
    .join("/");
  return readBlame(run, { ...values, path: contained.path, real, encoding });
}

/** As read_file does: git prints bytes, and says nothing about them. */
async function encodingOf({ real, stats }: ExistingPath): Promise<Encoding | "binary"> {
  const handle = await openRegular(real).catch(() => undefined);
  try {
    return handle === undefined ? "utf-8" : await sampleEncoding(handle, stats.size);
  } finally {
    await handle?.close();
  }
}

function describeBinary({ path, stats: { size, mtimeMs } }: ExistingPath, offset: number): ToolResult {
  return {
    fields: { path, size, binary: true },
    itemsName: "lines",
    items: [],
    offset,
    total: 0,
    version: `${size}-${mtimeMs}`,
    warnings: [`A binary file of ${fileSize(size)}: it has no lines. vcs_log tells who changed it.`],
  };
}

interface Request {
  readonly path: string;
  /** With links followed: git would tell about the link itself. */
  readonly real: string;
  readonly encoding: Encoding;
  readonly start_line: number;
  readonly end_line: number | undefined;
  readonly offset: number;
}

async function readBlame(run: Run, request: Request): Promise<ToolResult | ToolFailure> {
  const { path, real, start_line, end_line = "", offset } = request;
  const git = await startGit(run, ["blame", "--porcelain", "-L", `${start_line},${end_line}`, "--", real]);
  if (isFailure(git)) return git;
  const window = createWindow<BlamedLine>({ offset });
  const reader = createBlameReader(window, request.encoding);
  for await (const batch of splitRecords(git.output, "\n")) {
    for (const line of batch) reader.read(line);
  }
  const end = await git.end;
  const late = run.timedOut();
  if (late && window.total() === 0) {
    const hint = "Name a range with start_line and end_line.";
    return failure("timed_out", `git blame took longer than ${run.timeoutMs / 1000} s.`, hint);
  }
  // Past the end is an empty page, not a mistake.
  const past = /has only \d+ lines?/.exec(end.stderr)?.[0];
  if (end.code !== 0 && past === undefined && !late) return blameFailure(end, real);
  return {
    fields: {
      path,
      ...(real === path ? {} : { link_to: real }),
      authors: reader.authors.size,
      ...(reader.newest() ? { newest: reader.newest() } : {}),
    },
    itemsName: "lines",
    items: window.items,
    offset,
    total: late ? undefined : window.total(),
    more: late || window.more(),
    version: reader.version(),
    warnings: [
      ...(late ? [lateWarning(run, "the list of lines")] : []),
      ...(past === undefined ? [] : [`The file ${past}.`]),
    ],
  };
}

/** git names the path as it is, on several lines where it has several. */
function blameFailure(end: ProcessEnd, path: string): ToolFailure {
  if (!/^fatal: no such path /m.test(end.stderr)) return gitFailure(end);
  return failure("git_failed", `${shown(path)} is in no commit yet.`, "vcs_status lists what is new.");
}

interface BlameReader {
  read(line: string): void;
  readonly authors: ReadonlySet<string>;
  newest(): string | undefined;
  version(): string;
}

const mostLineCharacters = 500;

/** A commit's author and date come only with its first line. See git-blame(1), "The porcelain format". */
function createBlameReader(window: Window<BlamedLine>, encoding: Encoding): BlameReader {
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
    const shownText = decodeLine(text.slice(0, mostLineCharacters * 4 + 1), encoding);
    const cut =
      shownText.length > mostLineCharacters ? `${shownText.slice(0, mostLineCharacters)}…` : shownText;
    const { hash, line } = current;
    window.offer(() => ({ line, hash: hash.slice(0, 8), ...commit, text: cut }), cut.length + 80);
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
