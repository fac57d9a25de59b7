import { cutText } from "../../core/text/index.ts";
import { decodeBytes, splitRecords } from "../../host/index.ts";
import {
  type BudgetedTool,
  type CompressInput,
  isFailure,
  type PageData,
  type ToolFailure,
  type ToolResult,
} from "../session/index.ts";
import { defineTool, type ToolAnswer } from "./define-tool.ts";
import {
  addCutNote,
  describeCount,
  failure,
  listLate,
  listNames,
  quoteArgument,
  type Run,
  readWholeItems,
  shortenLine,
  type ToolPlace,
} from "./run.ts";
import {
  gitFailure,
  gitText,
  openRepository,
  type Repository,
  resolveCommit,
  startToolGit,
  submoduleNote,
} from "./source/repository.ts";

export interface Commit {
  readonly hash: string;
  readonly author: string;
  readonly date: string;
  readonly message: string;
}

export const createVcsLog: (place: ToolPlace) => BudgetedTool<"vcs_log"> = defineTool({
  name: "vcs_log",
  description: "List commits, newest first.",
  parameters: {
    mode: {
      type: "string",
      enum: ["oneline", "full"],
      description: "full: with author, date and whole message.",
      default: "oneline",
    },
    path: { type: "string", description: "Only commits that changed this file or directory." },
    revision: { type: "string", description: "Default: HEAD.", default: "HEAD" },
    author: { type: "string", description: "Part of a name or address." },
    since: { type: "string", description: "2026-01-31, or `2 weeks ago`." },
    until: { type: "string", description: "Only commits before this date." },
    max_commits: { type: "integer", description: "Default: 10.", default: 10, minimum: 1 },
  },
  limitParameter: "max_commits",
  compress: compressLog,
  renderText: renderLog,
  async run(values, run) {
    const repository = await openRepository(run, values.path);
    if (isFailure(repository)) return repository;
    const dates = await readDates(run, values);
    if (isFailure(dates)) return dates;
    const commit = await resolveCommit(run, values.revision);
    if (typeof commit !== "string") {
      if (values.revision !== "HEAD" || commit.code !== "unknown_revision") return commit;
      const none = { ...values, dates, total: 0, commit: "none", notes: [] };
      return (await checkHead(run)) ?? createResult([], run, none);
    }
    // Searches for plain text, not for an expression.
    const rest = [
      ...(values.author === undefined ? [] : ["--fixed-strings", "--regexp-ignore-case", `--author=${values.author}`]),
      ...dates.args,
      commit,
      ...repository.paths,
    ];
    return readLog(run, { ...values, dates, commit, rest, repository });
  },
});

interface LogRequest {
  readonly offset: number;
  readonly max_commits: number;
  readonly mode: "oneline" | "full";
  readonly commit: string;
  readonly dates: GitDates;
}

/** Counting a million commits takes seconds. Above this number the total is reported as "at least". */
const maxCountedAhead = 10_000;

/** git reads these numbers as 32 bits and fails above. */
function countable(number: number): number {
  return Math.min(number, 2_000_000_000);
}

async function readLog(
  run: Run,
  { rest, repository, ...request }: LogRequest & { rest: readonly string[]; repository: Repository },
): Promise<ToolAnswer> {
  const { offset, max_commits, mode } = request;
  // Counting the commits of a path reads the whole history. One more commit says whether there are more.
  const isCounted = repository.named === ".";
  const wanted = max_commits + (isCounted ? 0 : 1);
  const page = [`--skip=${countable(offset)}`, `--max-count=${countable(wanted)}`];
  const format = `--format=%h%n%an%n%aI%n${mode === "full" ? "%B" : "%s"}`;
  const git = await startToolGit(run, ["log", "-z", "--no-color", format, ...page, ...rest]);
  if (isFailure(git)) return git;
  const counting = isCounted
    ? gitText(run, ["rev-list", "--count", `--max-count=${countable(offset) + maxCountedAhead}`, ...rest])
    : undefined;
  const commits = await readCommits(git.output);
  const end = await git.end;
  const counted = await counting;
  if (end.code !== 0 && !run.timedOut()) return gitFailure(end);
  const isLast = !isCounted && !run.timedOut() && commits.length <= max_commits;
  const total = typeof counted === "string" ? Number(counted) : isLast ? offset + commits.length : undefined;
  const submodule = total === 0 ? await submoduleNote(run, repository.named) : undefined;
  const notes = [
    ...(repository.isShallow ? ["The clone is shallow and does not have older commits."] : []),
    ...(submodule === undefined ? [] : [submodule]),
  ];
  return createResult(commits.slice(0, max_commits), run, { ...request, total, notes });
}

async function readCommits(output: Parameters<typeof splitRecords>[0]): Promise<Commit[]> {
  const commits: Commit[] = [];
  for await (const batch of splitRecords(output, "\0")) {
    for (const record of batch) {
      const [hash = "", author = "", date = "", ...message] = decodeBytes(record).split("\n");
      commits.push({ hash, author, date, message: addCutNote(cutText(message.join("\n").trim(), 2_000)) });
    }
  }
  return commits;
}

function createResult(
  commits: readonly Commit[],
  run: Run,
  listing: LogRequest & {
    readonly total: number | undefined;
    readonly notes: readonly string[];
  },
): ToolResult {
  const { offset, max_commits, mode, commit, dates, total, notes } = listing;
  const atLeast = total === offset + maxCountedAhead;
  return {
    fields: { revision: commit.slice(0, 12), mode, ...dates.fields },
    itemsName: "commits",
    items: commits,
    offset,
    total,
    more: run.timedOut() || (total === undefined ? commits.length === max_commits : undefined),
    version: commit,
    warnings: [
      ...listLate(run, "the list of commits"),
      ...(atLeast ? [`There are at least ${total} commits. The others were not counted.`] : []),
      ...notes,
    ],
  };
}

/** Like `git log --oneline`. In full: a line with hash, date and author, then the message, indented. */
function renderLog({ commits, mode }: PageData): string {
  const listed = readWholeItems<Commit>(commits, "message");
  return listed
    .map(({ hash, author, date, message }) =>
      mode === "full" ? `${hash} ${date} ${author}\n${message.replace(/^(?=.)/gm, "    ")}` : `${hash} ${message}`,
    )
    .join("\n");
}

/** `15 commits. Recent: 1a2b3c4 Add store, 5d6e7f8 Fix paging, +13 more` */
function compressLog({ data }: CompressInput): string {
  const commits = readWholeItems<Commit>(data.commits, "hash", "message");
  const count = describeCount(data, ["commit", "commits"]);
  if (commits.length === 0) return data.total === 0 ? "No commits" : count;
  const recent = commits.map(({ hash, message }) => `${hash} ${shortenLine(message.split("\n")[0] ?? "", 60)}`);
  return `${count}. Recent: ${listNames(recent, 2)}`;
}

/** Dates from a model. git accepts any text as a date: it ignores words that it does not know, and "garbage" means
 *  now. */
interface GitDates {
  /** Arguments for `git log` and `git rev-list`. */
  readonly args: readonly string[];
  /** The date that git understood, in UTC. */
  readonly fields: { readonly since?: string; readonly until?: string };
}

async function readDates(
  run: Run,
  named: Readonly<Partial<Record<"since" | "until", string | undefined>>>,
): Promise<GitDates | ToolFailure> {
  const args: string[] = [];
  const fields: { since?: string; until?: string } = {};
  // Words that git knows (its date.c, 2.39), and words that people write between them.
  const dateWords =
    /^((second|minute|hour|day|week|month|year|fortnight)s?|ago|last|zero|one|two|three|four|five|six|seven|eight|nine|ten|now|today|yesterday|noon|midnight|tea|never|am|pm|t|z|utc|gmt|st|nd|rd|th|at|on|of|the|and|[ecmp][sd]t|ces?t|bst|jst|jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?|nov(ember)?|dec(ember)?|(sun|mon|tues?|wed(nes)?|thu(rs?)?|fri|sat(ur)?)(day)?)$/;
  for (const name of ["since", "until"] as const) {
    const text = named[name];
    if (text === undefined) continue;
    const words = text.toLowerCase().match(/[a-z]+/g) ?? [];
    const isDate = /^[\w\s:.,/@+-]*\w[\w\s:.,/@+-]*$/.test(text) && words.every((word) => dateWords.test(word));
    const option = isDate ? await gitText(run, ["rev-parse", `--${name}=${text}`]) : "";
    if (typeof option !== "string") return option;
    const seconds = Number(/^--m(?:ax|in)-age=(\d+)$/.exec(option.trim())?.[1] ?? Number.NaN);
    if (Number.isNaN(seconds) || !isSameDay(text, seconds)) {
      const hint = "Such as 2026-01-31, `2026-01-31 14:00`, `yesterday` or `2 weeks ago`.";
      return failure("invalid_argument", `${name} is not a date: ${quoteArgument(text)}.`, hint);
    }
    args.push(option.trim());
    fields[name] = `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`;
  }
  return { args, fields };
}

/** git ignores a year that it does not know, such as 2100. The current time of day and time zone may be added. */
function isSameDay(text: string, seconds: number): boolean {
  const [, year, month, day] = /^\s*(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})/.exec(text) ?? [];
  if (year === undefined) return true;
  const named = Date.UTC(Number(year), Number(month) - 1, Number(day));
  return Number(month) <= 12 && Math.abs(named - seconds * 1000) <= 2 * 86_400_000;
}

/** Returns why HEAD has no commit, or undefined if its branch has no commit yet. */
async function checkHead(run: Run): Promise<ToolFailure | undefined> {
  const branch = await gitText(run, ["symbolic-ref", "--quiet", "HEAD"]);
  const wanted = ["rev-parse", "--verify", "--quiet", "--end-of-options"];
  const commit = typeof branch === "string" ? await gitText(run, [...wanted, branch.trim()]) : branch;
  if (typeof commit !== "string" && commit.code === "timed_out") return commit;
  if (typeof branch === "string" && typeof commit !== "string") return undefined;
  const message = "HEAD names a commit that cannot be read: the repository is damaged.";
  return failure("git_failed", message, "Ask the user to check it with `git fsck`.");
}
