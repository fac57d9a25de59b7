import { type BudgetedTool, isFailure, type ToolFailure, type ToolResult } from "../../session/index.ts";
import { type ProcessEnd, splitRecords } from "../../workspace/index.ts";
import { defineTool, type ToolValues } from "../frame/define-tool.ts";
import { failure, shown } from "../frame/failure.ts";
import { fileSize } from "../frame/phrases.ts";
import { lateWarning, type Place, type Run } from "../frame/run.ts";
import { createWindow } from "../frame/window.ts";
import { containExisting, type ExistingPath } from "../source/contained-path.ts";
import { gitFailure, startGit } from "../source/git.ts";
import { openRegular } from "../source/open-regular.ts";
import { refuseSecret } from "../source/secret-paths.ts";
import { type Encoding, sampleEncoding } from "../source/text-encoding.ts";
import { compressBlame } from "./compress-blame.ts";
import { type BlamedLine, createBlameReader } from "./output/blame-lines.ts";
import { filterWarning } from "./repository.ts";
import { submoduleNote } from "./submodules.ts";

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
  const refused = await refuseSecret(run, contained);
  if (refused !== undefined) return refused;
  const encoding = await encodingOf(contained);
  if (encoding === "binary") return describeBinary(contained, values.offset);
  return readBlame(run, { ...values, path: contained.path, real: contained.realPath, encoding });
}

/** As read_file does: git prints bytes, and says nothing about them. */
async function encodingOf({ real }: ExistingPath): Promise<Encoding | "binary"> {
  const handle = await openRegular(real).catch(() => undefined);
  try {
    return handle === undefined ? "utf-8" : await sampleEncoding(handle);
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
  if (end.code !== 0 && past === undefined && !late) return blameFailure(run, { end, path: real });
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
      ...[(await filterWarning(run, git.filters, [real])) ?? []].flat(),
    ],
  };
}

/** git names the path as it is, on several lines where it has several. */
async function blameFailure(
  run: Run,
  { end, path }: { end: ProcessEnd; path: string },
): Promise<ToolFailure> {
  // git prints lines of that file, which may be a link to any other.
  if (/^fatal: (invalid object name|could not open object name list)/m.test(end.stderr)) {
    return failure("git_failed", "blame.ignoreRevsFile names a file that is no list of commits.");
  }
  if (!/^fatal: no such path /m.test(end.stderr)) return gitFailure(end);
  const note = await submoduleNote(run, path);
  if (note !== undefined) return failure("git_failed", note);
  return failure("git_failed", `${shown(path)} is in no commit yet.`, "vcs_status lists what is new.");
}
