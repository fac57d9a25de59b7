import { createHash } from "node:crypto";
import { type BudgetedTool, isFailure, type ToolFailure, type ToolResult } from "../../session/index.ts";
import { type GitProcess, hashed, splitRecords } from "../../workspace/index.ts";
import { defineTool, type ToolValues } from "../frame/define-tool.ts";
import { failure } from "../frame/failure.ts";
import { listNames, shortened } from "../frame/phrases.ts";
import { lateWarning, type Place, type Run } from "../frame/run.ts";
import { createWindow } from "../frame/window.ts";
import { gitFailure, startGit } from "../source/git.ts";
import { isSecretPath, refuseSecret, secretWarning } from "../source/secret-paths.ts";
import { compressDiff } from "./compress-diff.ts";
import { createDiffReader, type DiffHunk, type DiffReader } from "./output/diff-hunks.ts";
import { filterWarning, openRepository, type Repository, resolveCommit } from "./repository.ts";
import { submoduleNote } from "./submodules.ts";

const parameters = {
  path: { type: "string", description: "Only changes in this file or directory." },
  staged: {
    type: "boolean",
    description: "What is staged, instead of what is not.",
    default: false,
  },
  commit: { type: "string", description: "What this commit changed (a merge: against its first parent)." },
  from: { type: "string", description: "Compare with this branch, tag or commit." },
  to: { type: "string", description: "With from: compare with this one instead of the files on disk." },
  context_lines: { type: "integer", description: "Unchanged lines around a change.", default: 3, minimum: 0 },
} as const;

export function createVcsDiff(place: Place): BudgetedTool {
  return defineTool(
    {
      name: "vcs_diff",
      description:
        "Show changes as hunks: of the files on disk, of what is staged, of one commit, or between two. A long hunk comes in parts.",
      parameters,
      compress: compressDiff,
      run: diffFiles,
    },
    place,
  );
}

async function diffFiles(values: ToolValues<typeof parameters>, run: Run): Promise<ToolResult | ToolFailure> {
  const repository = await openRepository(run, values.path);
  if (isFailure(repository)) return repository;
  const refused = await refuseSecret(run, repository.contained);
  if (refused !== undefined) return refused;
  const sides = await sidesOf(run, values);
  if (isFailure(sides)) return sides;
  const context = `--unified=${Math.min(values.context_lines, mostContextLines)}`;
  const args = [...sides, ...format, context, ...repository.paths];
  return readDiff(run, { args, offset: values.offset, staged: values.staged, repository });
}

const mostContextLines = 100_000;

/** No setting changes the form. */
const format: readonly string[] = [
  "--patch",
  "--no-color",
  "--find-renames",
  "--relative",
  "--src-prefix=a/",
  "--dst-prefix=b/",
  "--output-indicator-new=+",
  "--output-indicator-old=-",
  "--output-indicator-context= ",
  "--submodule=short",
];

interface Sides {
  readonly staged: boolean;
  readonly commit?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** The command and the commits it compares. */
async function sidesOf(run: Run, { staged, commit, from, to }: Sides): Promise<string[] | ToolFailure> {
  const wrong = wrongSides({ staged, commit, from, to });
  if (wrong !== undefined) return failure("invalid_argument", wrong);
  const revisions: string[] = [];
  for (const revision of [commit, from, to]) {
    if (revision === undefined) continue;
    const resolved = await resolveCommit(run, revision);
    if (typeof resolved !== "string") return resolved;
    revisions.push(resolved);
  }
  if (commit !== undefined)
    return ["show", "--ignore-submodules=none", "--format=", "--first-parent", "-m", ...revisions];
  return ["diff", ...(staged ? ["--cached"] : []), ...revisions];
}

function wrongSides({ staged, commit, from, to }: Sides): string | undefined {
  if (commit !== undefined && (from !== undefined || to !== undefined || staged)) {
    return "commit stands alone: leave out from, to and staged.";
  }
  if (to !== undefined && from === undefined) return "to needs from.";
  return to !== undefined && staged ? "staged compares with from only: leave out to." : undefined;
}

interface Request {
  readonly args: readonly string[];
  readonly offset: number;
  readonly staged: boolean;
  readonly repository: Repository;
}

/** The whole diff passes by, so that totals are true; the hunks of this page are kept. */
async function readDiff(run: Run, request: Request): Promise<ToolResult | ToolFailure> {
  const { args, offset, staged, repository } = request;
  const git = await startGit(run, args);
  if (isFailure(git)) return git;
  const hash = createHash("sha1");
  const window = createWindow<DiffHunk>({ offset });
  const hidden = new Set<string>();
  const offer = (hunk: DiffHunk) => window.offer(() => hunk, hunk.text?.length);
  const reader = createDiffReader(hidingSecrets(run, hidden, offer), repository.prefix);
  for await (const batch of splitRecords(hashed(git.output, hash), "\n")) {
    for (const line of batch) reader.read(line);
  }
  // Half a hunk would pass for a whole one, and the next page would go on behind it.
  if (!run.timedOut()) reader.end();
  const end = await git.end;
  if (end.code !== 0 && !run.timedOut()) return gitFailure(end);
  const notes = await notesOn(run, { isEmpty: window.total() === 0, named: repository.named, reader, git });
  return {
    fields: { ...(staged ? { staged } : {}), ...reader.facts() },
    itemsName: "hunks",
    items: window.items,
    offset,
    total: run.timedOut() ? undefined : window.total(),
    more: run.timedOut() || window.more(),
    version: hash.digest("hex"),
    warnings: [
      ...(run.timedOut() ? [lateWarning(run, "the diff")] : []),
      ...[
        secretWarning([...hidden], "shown") ?? [],
        notes,
        dirtyWarning(reader.dirtySubmodules()) ?? [],
      ].flat(),
    ],
  };
}

interface Read {
  readonly isEmpty: boolean;
  readonly named: string;
  readonly reader: DiffReader;
  readonly git: GitProcess;
}

async function notesOn(run: Run, { isEmpty, named, reader, git }: Read): Promise<string[]> {
  if (run.timedOut()) return [];
  const submodule = isEmpty ? await submoduleNote(run, named) : undefined;
  const filtered = await filterWarning(run, git.filters, reader.facts().files);
  return [submodule ?? [], filtered ?? [], git.notes].flat();
}

/** Of a file that usually holds secrets, also before it was renamed, one item without text is left. */
function hidingSecrets(run: Run, hidden: Set<string>, take: (hunk: DiffHunk) => void): typeof take {
  return (hunk) => {
    const { header: _, text, ...file } = hunk;
    if (text === undefined || !isSecretPath(run, file.path, file.from ?? file.path)) take(hunk);
    else if (!hidden.has(file.path)) {
      hidden.add(file.path);
      take({ ...file, hidden: true });
    }
  };
}

function dirtyWarning(submodules: readonly string[]): string | undefined {
  if (submodules.length === 0) return undefined;
  const names = submodules.map((path) => shortened(path, 80));
  return `Changes inside of a submodule are not shown: ${listNames(names, 3)}.`;
}
