import { type BudgetedTool, isFailure, type ToolFailure, type ToolResult } from "../../session/index.ts";
import { cutText } from "../../text/index.ts";
import { decodeBytes, splitRecords } from "../../workspace/index.ts";
import { defineTool, type ToolValues } from "../frame/define-tool.ts";
import { withCutNote } from "../frame/phrases.ts";
import { lateWarning, type Place, type Run } from "../frame/run.ts";
import { gitFailure, startGit } from "../source/git.ts";
import { compressLog } from "./compress-log.ts";
import { type GitDates, readDates } from "./git-dates.ts";
import { gitText, headProblem, openRepository, type Repository, resolveCommit } from "./repository.ts";
import { submoduleNote } from "./submodules.ts";

export interface Commit {
  readonly hash: string;
  readonly author: string;
  readonly date: string;
  readonly message: string;
}

const parameters = {
  path: { type: "string", description: "Only commits that changed this file or directory." },
  revision: { type: "string", description: "Branch, tag or commit to go back from.", default: "HEAD" },
  author: { type: "string", description: "Only commits whose author's name or address contains this." },
  since: { type: "string", description: "Only commits after this date: 2026-01-31, or `2 weeks ago`." },
  until: { type: "string", description: "Only commits before this date." },
  max_commits: { type: "integer", description: "Commits to return at most.", default: 10, minimum: 1 },
} as const;

export function createVcsLog(place: Place): BudgetedTool {
  return defineTool(
    {
      name: "vcs_log",
      description: "List commits, newest first: hash, author, date, message.",
      parameters,
      limitParameter: "max_commits",
      compress: compressLog,
      run: readCommits,
    },
    place,
  );
}

async function readCommits(
  values: ToolValues<typeof parameters>,
  run: Run,
): Promise<ToolResult | ToolFailure> {
  const repository = await openRepository(run, values.path);
  if (isFailure(repository)) return repository;
  const dates = await readDates(run, values);
  if (isFailure(dates)) return dates;
  const commit = await resolveCommit(run, values.revision);
  if (typeof commit !== "string") {
    if (values.revision !== "HEAD" || commit.code !== "unknown_revision") return commit;
    const none = { ...values, dates, total: 0, commit: "none", notes: [] };
    return (await headProblem(run)) ?? describe([], run, none);
  }
  const rest = [...authorFilter(values.author), ...dates.args, commit, ...repository.paths];
  return readLog(run, { ...values, dates, commit, rest, repository });
}

interface Request {
  readonly offset: number;
  readonly max_commits: number;
  readonly commit: string;
  readonly dates: GitDates;
}

/** What was asked for is plain text, not an expression. */
function authorFilter(author: string | undefined): string[] {
  return author === undefined ? [] : ["--fixed-strings", "--regexp-ignore-case", `--author=${author}`];
}

/** Counting a million commits takes seconds: from here on a total is only said to be at least this. */
const countedAhead = 10_000;

/** git reads these numbers into 32 bits, and fails above. */
function countable(number: number): number {
  return Math.min(number, 2_000_000_000);
}

async function readLog(
  run: Run,
  { rest, repository, ...request }: Request & { rest: readonly string[]; repository: Repository },
): Promise<ToolResult | ToolFailure> {
  const { offset, max_commits } = request;
  const page = [`--skip=${countable(offset)}`, `--max-count=${countable(max_commits)}`];
  const git = await startGit(run, ["log", "-z", "--no-color", "--format=%h%n%an%n%aI%n%B", ...page, ...rest]);
  if (isFailure(git)) return git;
  const counting = gitText(run, [
    "rev-list",
    "--count",
    `--max-count=${countable(offset) + countedAhead}`,
    ...rest,
  ]);
  const commits: Commit[] = [];
  for await (const batch of splitRecords(git.output, "\0")) commits.push(...batch.map(parseCommit));
  const end = await git.end;
  const counted = await counting;
  if (end.code !== 0 && !run.timedOut()) return gitFailure(end);
  const total = typeof counted === "string" ? Number(counted) : undefined;
  const notes = await notesOn(repository, run, total === 0);
  return describe(commits, run, { ...request, total, notes });
}

async function notesOn({ named, isShallow }: Repository, run: Run, isEmpty: boolean): Promise<string[]> {
  const submodule = isEmpty ? await submoduleNote(run, named) : undefined;
  return [
    ...(isShallow ? ["The clone is shallow: older commits are not in it."] : []),
    ...(submodule === undefined ? [] : [submodule]),
  ];
}

interface Listing extends Request {
  readonly total: number | undefined;
  readonly notes: readonly string[];
}

function describe(
  commits: readonly Commit[],
  run: Run,
  { offset, max_commits, commit, dates, total, notes }: Listing,
): ToolResult {
  const atLeast = total === offset + countedAhead;
  return {
    fields: { revision: commit.slice(0, 12), ...dates.fields },
    itemsName: "commits",
    items: commits,
    offset,
    total,
    more: run.timedOut() || (total === undefined ? commits.length === max_commits : undefined),
    version: commit,
    warnings: [
      ...(run.timedOut() ? [lateWarning(run, "the list of commits")] : []),
      ...(atLeast ? [`There are at least ${total} commits; more were not counted.`] : []),
      ...notes,
    ],
  };
}

const mostMessageCharacters = 2_000;

function parseCommit(record: string): Commit {
  const [hash = "", author = "", date = "", ...message] = decodeBytes(record).split("\n");
  const text = message.join("\n").trim();
  return { hash, author, date, message: withCutNote(cutText(text, mostMessageCharacters)) };
}
