import { createHash } from "node:crypto";
import { decodeBytes, hashed, splitRecords } from "../../host/index.ts";
import { type BudgetedTool, type CompressInput, isFailure, type PageData } from "../session/index.ts";
import { createWindow, defineTool, describeWindow, type ToolAnswer, type Window } from "./define-tool.ts";
import { linePath, listLate, type Run, readWholeItems, shortenLine, type ToolPlace } from "./run.ts";
import { deniedByGit, deniedWarning } from "./source/contained-path.ts";
import {
  belowRoot,
  gitFailure,
  listGitNotes,
  openRepository,
  type Repository,
  startToolGit,
} from "./source/repository.ts";

/** A path in several states is one item, such as staged and then changed again. */
interface ChangedFile {
  readonly path: string;
  readonly staged?: string;
  readonly unstaged?: string;
  readonly untracked?: true;
  readonly conflict?: true;
  /** What changed in a submodule: `new commits`, `modified files`, `untracked files`. */
  readonly submodule?: string;
  /** The old path of a renamed or copied file. */
  readonly from?: string;
}

export const createVcsStatus: (place: ToolPlace) => BudgetedTool<"vcs_status"> = defineTool({
  name: "vcs_status",
  description: "Show the branch, its upstream, and changed files.",
  parameters: {
    path: { type: "string", description: "Only changes in this file or directory." },
  },
  compress: compressStatus,
  renderText: renderStatus,
  run: async ({ path, offset }, run) => {
    const repository = await openRepository(run, path);
    return isFailure(repository) ? repository : readStatus(run, offset, repository);
  },
});

async function readStatus(run: Run, offset: number, { paths, prefix, named }: Repository): Promise<ToolAnswer> {
  const command = ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all"];
  const git = await startToolGit(run, [...command, ...paths]);
  if (isFailure(git)) return git;
  const hash = createHash("sha1");
  const window = createWindow<ChangedFile>({ offset });
  const reader = createStatusReader(window, prefix);
  for await (const batch of splitRecords(hashed(git.output, hash), "\0")) {
    for (const record of batch) reader.read(record);
  }
  const end = await git.end;
  if (end.code !== 0 && !run.timedOut()) return gitFailure(end);
  const late = run.timedOut();
  const changed = window.items.filter(({ unstaged }) => unstaged === "modified").map(({ path }) => path);
  const notes = await listGitNotes(run, git, { changed, empty: window.total() === 0 && named });
  return {
    fields: {
      ...reader.branch,
      ...(late && window.total() === 0 ? {} : { clean: window.total() === 0 }),
      ...reader.counts,
    },
    itemsName: "changes",
    offset,
    ...describeWindow(window, run),
    version: hash.digest("hex"),
    warnings: [
      ...listLate(run, "the list of changes"),
      ...notes,
      ...[deniedWarning(deniedByGit(end.stderr)) ?? []].flat(),
    ],
  };
}

/** The format is described in git-status(1), "Porcelain Format Version 2". Its paths start at the repository, ours at
 *  the root. */
function createStatusReader(window: Window<ChangedFile>, prefix: string) {
  const branch: Record<string, string | number> = {};
  const counts = { staged: 0, modified: 0, untracked: 0, conflicts: 0 };
  let renamed: string | undefined;
  const offer = (file: ChangedFile) => {
    if (file.staged !== undefined) counts.staged++;
    if (file.unstaged !== undefined) counts.modified++;
    if (file.untracked) counts.untracked++;
    if (file.conflict) counts.conflicts++;
    const path = belowRoot(file.path, prefix);
    window.offer(() => ({ ...file, path }), path.length);
  };
  const read = (record: string) => {
    if (renamed !== undefined) {
      offer({ ...parseChange(renamed), from: belowRoot(decodeBytes(record), prefix) });
      renamed = undefined;
    } else if (record.startsWith("# ")) Object.assign(branch, parseBranch(record));
    // The next record is the old path.
    else if (record.startsWith("2 ")) renamed = record;
    else if (/^[1u?] /.test(record)) offer(parseChange(record));
  };
  return { read, branch, counts };
}

function parseBranch(record: string): Record<string, string | number> {
  const [, name, ...values] = record.split(" ");
  if (name === "branch.head") return { branch: decodeBytes(values.join(" ")) };
  if (name === "branch.upstream") return { upstream: decodeBytes(values.join(" ")) };
  if (name !== "branch.ab") return {};
  return { ahead: Math.abs(Number(values[0])), behind: Math.abs(Number(values[1])) };
}

const states: Readonly<Record<string, string>> = {
  M: "modified",
  A: "added",
  D: "deleted",
  R: "renamed",
  C: "copied",
  T: "type changed",
};

function parseChange(record: string): ChangedFile {
  const kind = record[0] ?? "";
  const fields = record.split(" ");
  // The number of fields before the path.
  const start: Readonly<Record<string, number>> = { "1": 8, "2": 9, u: 10, "?": 1 };
  const path = decodeBytes(fields.slice(start[kind]).join(" "));
  if (kind === "?") return { path, untracked: true };
  if (kind === "u") return { path, conflict: true };
  const [staged = ".", unstaged = "."] = fields[1] ?? "";
  // `N...` if it is not a submodule. Otherwise `S` and, for each kind of change, a letter or a dot.
  const field = fields[2] ?? "";
  const kinds = ["new commits", "modified files", "untracked files"];
  const changed = kinds.filter((_, index) => field.startsWith("S") && /[CMU]/.test(field[index + 1] ?? ""));
  return {
    path,
    ...(staged === "." ? {} : { staged: states[staged] ?? staged }),
    ...(unstaged === "." ? {} : { unstaged: states[unstaged] ?? unstaged }),
    ...(changed.length === 0 ? {} : { submodule: changed.join(", ") }),
  };
}

/** `main [ahead 2]: 1 staged, 2 modified, 1 untracked`, or `main (clean) [ahead 2]` */
function compressStatus({ data }: CompressInput): string {
  const branch = shortenLine(String(data.branch ?? "?"), 80);
  const distance = findPositive(data, ["ahead", "behind"]).map((name) => `${name} ${data[name]}`);
  const upstream = distance.length === 0 ? "" : ` [${distance.join(", ")}]`;
  const kinds = findPositive(data, ["staged", "modified", "untracked", "conflicts"]);
  if (kinds.length > 0) return `${branch}${upstream}: ${kinds.map((name) => `${data[name]} ${name}`).join(", ")}`;
  if (data.total === undefined && data.clean === undefined)
    return `${branch} (stopped before a change was found)${upstream}`;
  return `${branch} (clean)${upstream}`;
}

/** Like `git status --short --branch`. */
function renderStatus(page: PageData): string {
  const { branch = "?", upstream, changes } = page;
  const distance = findPositive(page, ["ahead", "behind"]).map((name) => `${name} ${page[name]}`);
  const heading = `## ${branch}${upstream === undefined ? "" : `...${upstream}`}`;
  const files = readWholeItems<ChangedFile>(changes, "path");
  return [`${heading}${distance.length === 0 ? "" : ` [${distance.join(", ")}]`}`, ...files.map(renderChange)].join(
    "\n",
  );
}

function renderChange({ path, staged, unstaged, untracked, conflict, submodule, from }: ChangedFile): string {
  const findLetter = (state: string | undefined): string => {
    if (state === undefined) return " ";
    return Object.keys(states).find((letter) => states[letter] === state) ?? "?";
  };
  const marks = untracked ? "??" : conflict ? "UU" : `${findLetter(staged)}${findLetter(unstaged)}`;
  const old = from === undefined ? "" : `${linePath(from)} -> `;
  return `${marks} ${old}${linePath(path)}${submodule === undefined ? "" : ` (submodule: ${submodule})`}`;
}

/** Leaves out counts of zero. */
function findPositive(data: CompressInput["data"], names: readonly string[]): string[] {
  return names.filter((name) => typeof data[name] === "number" && data[name] !== 0);
}
