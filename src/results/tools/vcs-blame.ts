import { createHash } from "node:crypto";
import { cutText } from "../../core/text/index.ts";
import { decodeBytes, inspectRepository, type ProcessEnd, splitRecords } from "../../host/index.ts";
import { type BudgetedTool, type CompressInput, isFailure, type PageData, type ToolFailure } from "../session/index.ts";
import { createWindow, defineTool, describeWindow, type ToolAnswer, type Window } from "./define-tool.ts";
import {
  failure,
  formatCount,
  formatSize,
  listLate,
  quoteArgument,
  type Run,
  readWholeItems,
  shortenLine,
  type ToolPlace,
} from "./run.ts";
import { containExisting, type ExistingPath, openRegular } from "./source/contained-path.ts";
import { filterWarning, gitFailure, startToolGit, submoduleNote } from "./source/repository.ts";
import { refuseSecret } from "./source/secret-paths.ts";
import { decodeLine, type Encoding, sampleEncoding } from "./source/text-encoding.ts";

export const createVcsBlame: (place: ToolPlace) => BudgetedTool<"vcs_blame"> = defineTool({
  name: "vcs_blame",
  description: "Show the last commit of each line of a file.",
  parameters: {
    path: { type: "string", description: "File to annotate.", required: true },
    start_line: { type: "integer", description: "First line, from 1.", default: 1, minimum: 1 },
    end_line: { type: "integer", description: "Last line. Default: the last one of the file.", minimum: 1 },
  },
  compress: compressBlame,
  renderText: renderBlame,
  async run(values, run) {
    const { start_line, end_line = start_line } = values;
    if (end_line < start_line) {
      return failure("invalid_argument", `end_line ${end_line} is before start_line ${start_line}.`);
    }
    // Takes as long as the checks of the file. Git's own call gets the same answer, or the same error.
    inspectRepository(run).catch(() => {});
    const contained = await containExisting(run.root, values.path);
    if (isFailure(contained)) return contained;
    if (!contained.stats.isFile()) return failure("unreadable", `${quoteArgument(values.path)} is not a file.`);
    const refused = await refuseSecret(run, contained);
    if (refused !== undefined) return refused;
    const encoding = await detectEncoding(contained, run.root);
    if (encoding === "binary") {
      const { size, mtimeMs } = contained.stats;
      const warning = `This is a binary file of ${formatSize(size)}, without lines. Use vcs_log to see who changed it.`;
      return {
        fields: { path: contained.path, size, binary: true },
        itemsName: "lines",
        items: [],
        offset: values.offset,
        total: 0,
        version: `${size}-${mtimeMs}`,
        warnings: [warning],
      };
    }
    return readBlame(run, { ...values, path: contained.path, real: contained.realPath, encoding });
  },
});

/** Decodes lines like read_file, because git prints bytes without their encoding. */
async function detectEncoding({ real }: ExistingPath, root: string): Promise<Encoding | "binary"> {
  const handle = await openRegular(real, root).catch(() => undefined);
  try {
    return handle === undefined ? "utf-8" : await sampleEncoding(handle);
  } finally {
    await handle?.close();
  }
}

async function readBlame(
  run: Run,
  request: {
    readonly path: string;
    /** With links resolved. Otherwise git would report the link itself. */
    readonly real: string;
    readonly encoding: Encoding;
    readonly start_line: number;
    readonly end_line: number | undefined;
    readonly offset: number;
  },
): Promise<ToolAnswer> {
  const { path, real, start_line, end_line = "", offset } = request;
  const git = await startToolGit(run, ["blame", "--porcelain", "-L", `${start_line},${end_line}`, "--", real]);
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
  // An offset past the end gives an empty page, not an error.
  const past = /has only \d+ lines?/.exec(end.stderr)?.[0];
  if (end.code !== 0 && past === undefined && !late) return explainFailure(run, { end, path: real });
  return {
    fields: {
      path,
      ...(real === path ? {} : { link_to: real }),
      authors: reader.authors.size,
      ...(reader.newest() ? { newest: reader.newest() } : {}),
    },
    itemsName: "lines",
    offset,
    ...describeWindow(window, run),
    version: reader.version(),
    warnings: [
      ...listLate(run, "the list of lines"),
      ...(past === undefined ? [] : [`The file ${past}.`]),
      ...[(await filterWarning(run, git.filters, [real])) ?? []].flat(),
    ],
  };
}

/** git prints the path as it is, possibly on several lines. */
async function explainFailure(run: Run, { end, path }: { end: ProcessEnd; path: string }): Promise<ToolFailure> {
  // git prints lines of that file, which may be a link to any other file.
  if (/^fatal: (invalid object name|could not open object name list)/m.test(end.stderr)) {
    return failure("git_failed", "blame.ignoreRevsFile names a file that is not a list of commits.");
  }
  if (!/^fatal: no such path /m.test(end.stderr)) return gitFailure(end);
  const note = await submoduleNote(run, path);
  if (note !== undefined) return failure("git_failed", note);
  return failure("git_failed", `${quoteArgument(path)} is not in any commit yet.`, "Use vcs_status to list new files.");
}

/** `Blame src/store.ts: 1234 lines, 4 authors, newest 2026-11-02` */
function compressBlame({ data }: CompressInput): string {
  const { authors, newest, total } = data;
  const facts = [
    formatCount(Number(total ?? data.returned ?? 0), ["line", "lines"]),
    ...(typeof authors === "number" ? [formatCount(authors, ["author", "authors"])] : []),
    ...(typeof newest === "string" ? [`newest ${newest}`] : []),
  ];
  return `Blame ${shortenLine(String(data.path ?? "?"), 100)}: ${facts.join(", ")}`;
}

/** Lines in runs, each after the commit that changed them last. The first run of a commit has its author and date. */
function renderBlame({ lines }: PageData): string {
  const known = new Set<string>();
  const rendered: string[] = [];
  let last: string | undefined;
  for (const { line, hash, author, date, text } of readWholeItems<BlamedLine>(lines, "hash")) {
    if (hash !== last) rendered.push(known.has(hash) ? hash : `${hash} ${author} ${date}`);
    known.add(hash);
    last = hash;
    rendered.push(`${line}\t${text}`);
  }
  return rendered.join("\n");
}

/** Reads the output of `git blame --porcelain` line by line. */
export interface BlamedLine {
  readonly line: number;
  readonly hash: string;
  readonly author: string;
  readonly date: string;
  readonly text: string;
}

const maxLineCharacters = 500;

/** A commit's author and date come only with its first line. See git-blame(1), "The porcelain format". */
function createBlameReader(window: Window<BlamedLine>, encoding: Encoding) {
  const commits = new Map<string, { author: string; date: string }>();
  const authors = new Set<string>();
  const version = createHash("sha1");
  let current = { hash: "", line: 0 };
  let newest: string | undefined;
  const findCommit = (hash: string) => {
    const known = commits.get(hash) ?? { author: "", date: "" };
    commits.set(hash, known);
    return known;
  };
  const finishLine = (text: string) => {
    const commit = findCommit(current.hash);
    authors.add(commit.author);
    if (newest === undefined || commit.date > newest) newest = commit.date;
    // One byte more than whole characters, because a UTF-16 line feed has a byte at one end.
    const start = decodeLine(text.slice(0, maxLineCharacters * 4 + 1), { encoding });
    const cut = cutText(start, maxLineCharacters);
    const shownText = cut.omitted > 0 ? `${cut.text}…` : cut.text;
    const { hash, line } = current;
    window.offer(() => ({ line, hash: hash.slice(0, 8), ...commit, text: shownText }), shownText.length + 80);
  };
  return {
    read: (line: string): void => {
      // An uncommitted line has the current second as its time. A commit's own time is part of its hash.
      if (!/^(?:author|committer)-time /.test(line)) version.update(`${line}\n`, "latin1");
      const header = /^([\da-f]{40,64}) \d+ (\d+)/.exec(line);
      if (line.startsWith("\t")) finishLine(line.slice(1));
      else if (header !== null) current = { hash: header[1] ?? "", line: Number(header[2]) };
      else if (line.startsWith("author ")) findCommit(current.hash).author = decodeBytes(line.slice(7));
      else if (line.startsWith("author-time ")) {
        const date = new Date(Number(line.slice(12)) * 1000);
        // A commit can claim any time, also one outside of the calendar.
        findCommit(current.hash).date = Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 10);
      }
    },
    authors,
    newest: (): string | undefined => newest,
    version: () => version.digest("hex"),
  };
}
