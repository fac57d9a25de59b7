import { createHash } from "node:crypto";
import { type BudgetedTool, isFailure, type ToolFailure, type ToolResult } from "../../session/index.ts";
import { decodeBytes, type GitProcess, hashed, splitRecords } from "../../workspace/index.ts";
import { defineTool, type ToolValues } from "../frame/define-tool.ts";
import { lateWarning, type Place, type Run } from "../frame/run.ts";
import { createWindow, type Window } from "../frame/window.ts";
import { deniedByGit, deniedWarning } from "../source/denied.ts";
import { gitFailure, startGit } from "../source/git.ts";
import { compressStatus } from "./compress-status.ts";
import { belowRoot, filterWarning, openRepository, type Repository } from "./repository.ts";
import { submoduleNote } from "./submodules.ts";

/** A path in several states is one item: staged, and changed again since. */
export interface ChangedFile {
  readonly path: string;
  readonly staged?: string;
  readonly unstaged?: string;
  readonly untracked?: true;
  readonly conflict?: true;
  /** What changed in a submodule: `new commits`, `modified files`, `untracked files`. */
  readonly submodule?: string;
  /** Where a renamed or copied file came from. */
  readonly from?: string;
}

const parameters = {
  path: { type: "string", description: "Only changes in this file or directory." },
} as const;

export function createVcsStatus(place: Place): BudgetedTool {
  return defineTool(
    {
      name: "vcs_status",
      description:
        "Show the branch, how far it is from its upstream, and which files are staged, changed or new.",
      parameters,
      compress: compressStatus,
      run: showStatus,
    },
    place,
  );
}

async function showStatus(
  { path, offset }: ToolValues<typeof parameters>,
  run: Run,
): Promise<ToolResult | ToolFailure> {
  const repository = await openRepository(run, path);
  return isFailure(repository) ? repository : readStatus(run, offset, repository);
}

async function readStatus(
  run: Run,
  offset: number,
  { paths, prefix, named }: Repository,
): Promise<ToolResult | ToolFailure> {
  const command = ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all"];
  const git = await startGit(run, [...command, ...paths]);
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
  const notes = await notesOn(run, { window, named, git });
  return {
    fields: {
      ...reader.branch,
      ...(late && window.total() === 0 ? {} : { clean: window.total() === 0 }),
      ...reader.counts,
    },
    itemsName: "changes",
    items: window.items,
    offset,
    total: late ? undefined : window.total(),
    more: late || window.more(),
    version: hash.digest("hex"),
    warnings: [
      ...(late ? [lateWarning(run, "the list of changes")] : []),
      ...notes,
      ...[deniedWarning(deniedByGit(end.stderr)) ?? []].flat(),
    ],
  };
}

interface Listed {
  readonly window: Window<ChangedFile>;
  readonly named: string;
  readonly git: GitProcess;
}

async function notesOn(run: Run, { window, named, git }: Listed): Promise<string[]> {
  if (run.timedOut()) return [];
  const submodule = window.total() === 0 ? await submoduleNote(run, named) : undefined;
  const changed = window.items.filter(({ unstaged }) => unstaged === "modified").map(({ path }) => path);
  const filtered = await filterWarning(run, git.filters, changed);
  return [submodule ?? [], filtered ?? [], git.notes].flat();
}

interface StatusReader {
  read(record: string): void;
  readonly branch: Record<string, string | number>;
  readonly counts: Record<"staged" | "modified" | "untracked" | "conflicts", number>;
}

/** The format is described in git-status(1), "Porcelain Format Version 2". Its paths begin at the repository, ours at the root. */
function createStatusReader(window: Window<ChangedFile>, prefix: string): StatusReader {
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
    // The path it had before is the next record.
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

/** Fields before the path, by the kind of the record. */
const fieldsBefore: Readonly<Record<string, number>> = { "1": 8, "2": 9, u: 10, "?": 1 };

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
  const path = decodeBytes(fields.slice(fieldsBefore[kind]).join(" "));
  if (kind === "?") return { path, untracked: true };
  if (kind === "u") return { path, conflict: true };
  const [staged = ".", unstaged = "."] = fields[1] ?? "";
  return {
    path,
    ...(staged === "." ? {} : { staged: states[staged] ?? staged }),
    ...(unstaged === "." ? {} : { unstaged: states[unstaged] ?? unstaged }),
    ...submoduleOf(fields[2] ?? ""),
  };
}

/** `N...` for what is none, else `S` and a letter or a dot for each kind of change. */
function submoduleOf(field: string): { submodule?: string } {
  const kinds = ["new commits", "modified files", "untracked files"];
  const changed = kinds.filter((_, index) => field.startsWith("S") && /[CMU]/.test(field[index + 1] ?? ""));
  return changed.length === 0 ? {} : { submodule: changed.join(", ") };
}
