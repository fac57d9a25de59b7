import { createHash } from "node:crypto";
import { hashed, splitRecords } from "../../host/index.ts";
import { type BudgetedTool, type CompressInput, isFailure, type PageData, type ToolFailure } from "../session/index.ts";
import { createWindow, defineTool, describeWindow, type ToolAnswer } from "./define-tool.ts";
import { createDiffReader, type DiffHunk, type FileStat, unmerged } from "./diff-reader.ts";
import {
  baseName,
  failure,
  linePath,
  listLate,
  listNames,
  type Run,
  readWholeItems,
  shortenLine,
  type ToolPlace,
} from "./run.ts";
import {
  gitFailure,
  listGitNotes,
  openRepository,
  type Repository,
  resolveCommit,
  startToolGit,
} from "./source/repository.ts";
import { isSecretPath, refuseSecret, secretWarning } from "./source/secret-paths.ts";

export const createVcsDiff: (place: ToolPlace) => BudgetedTool<"vcs_diff"> = defineTool({
  name: "vcs_diff",
  description: "Show unstaged or staged changes, those of a commit, or between two.",
  parameters: {
    mode: {
      type: "string",
      enum: ["full", "stat", "files"],
      description: "stat: lines counted by file. files: only paths.",
      default: "full",
    },
    path: { type: "string", description: "Only changes in this file or directory." },
    staged: { type: "boolean", description: "Only staged changes.", default: false },
    commit: { type: "string", description: "Changes of this commit." },
    from: { type: "string", description: "Compare this branch, tag or commit with the files on disk." },
    to: { type: "string", description: "With from: compare with this instead." },
    context_lines: { type: "integer", description: "Unchanged lines around a change.", default: 3, minimum: 0 },
  },
  compress: compressDiff,
  renderText: renderDiff,
  async run(values, run) {
    const repository = await openRepository(run, values.path);
    if (isFailure(repository)) return repository;
    const refused = await refuseSecret(run, repository.contained);
    if (refused !== undefined) return refused;
    const sides = await listSides(run, values);
    if (isFailure(sides)) return sides;
    const context = `--unified=${Math.min(values.context_lines, 100_000)}`;
    const args = [...sides, ...format, context, ...repository.paths];
    return readDiff(run, { args, offset: values.offset, staged: values.staged, mode: values.mode, repository });
  },
});

/** Options that override settings which change the format. */
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

/** The command and the commits that it compares. */
async function listSides(
  run: Run,
  sides: { readonly staged: boolean } & { readonly [Name in "commit" | "from" | "to"]?: string | undefined },
): Promise<string[] | ToolFailure> {
  const { staged, commit, from, to } = sides;
  const refuse = (message: string) => failure("invalid_argument", message);
  if (commit !== undefined && (from !== undefined || to !== undefined || staged)) {
    return refuse("commit cannot be combined with from, to or staged.");
  }
  if (to !== undefined && from === undefined) return refuse("to needs from.");
  if (to !== undefined && staged) return refuse("staged cannot be combined with to.");
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

/** Reads the whole diff, so that totals are right. Keeps the hunks or the files of this page. */
async function readDiff(
  run: Run,
  request: {
    readonly args: readonly string[];
    readonly offset: number;
    readonly staged: boolean;
    readonly mode: "full" | "stat" | "files";
    readonly repository: Repository;
  },
): Promise<ToolAnswer> {
  const { args, offset, staged, mode, repository } = request;
  const git = await startToolGit(run, args);
  if (isFailure(git)) return git;
  const hash = createHash("sha1");
  const window = createWindow<DiffHunk | FileStat>({ offset });
  const hidden = new Set<string>();
  const offer = (hunk: DiffHunk) => mode === "full" && window.offer(() => hunk, hunk.text?.length);
  // A file that usually has secrets, now or before it was renamed, becomes one item without text.
  const reader = createDiffReader(
    (hunk) => {
      const { header: _, text, ...file } = hunk;
      if (text === undefined || !isSecretPath(run, file.path, file.from ?? file.path)) offer(hunk);
      else if (!hidden.has(file.path)) {
        hidden.add(file.path);
        offer({ ...file, hidden: true });
      }
    },
    {
      prefix: repository.prefix,
      takeFile: ({ insertions, deletions, ...file }) => {
        if (mode === "full") return;
        window.offer(() => (mode === "stat" ? { ...file, insertions, deletions } : file), file.path.length);
      },
    },
  );
  for await (const batch of splitRecords(hashed(git.output, hash), "\n")) {
    for (const line of batch) reader.read(line);
  }
  // A partial hunk would look complete, and the next page would continue after it.
  if (!run.timedOut()) reader.end();
  const end = await git.end;
  if (end.code !== 0 && !run.timedOut()) return gitFailure(end);
  const { files, ...counts } = reader.facts();
  const dirty = reader.dirtySubmodules().map((path) => shortenLine(path, 80));
  const dirtyNote = dirty.length === 0 ? [] : [`Changes inside of a submodule are not shown: ${listNames(dirty, 3)}.`];
  const notes = await listGitNotes(run, git, {
    changed: reader.facts().files,
    empty: window.total() === 0 && repository.named,
  });
  return {
    // In the other modes the items are the files.
    fields: { ...(staged ? { staged } : {}), ...counts, ...(mode === "full" ? { files } : {}) },
    itemsName: mode === "full" ? "hunks" : "files",
    offset,
    ...describeWindow(window, run),
    version: hash.digest("hex"),
    warnings: [...listLate(run, "the diff"), ...[secretWarning([...hidden], "shown") ?? [], notes, dirtyNote].flat()],
  };
}

/** `Diff: 5 files, +234/-89 lines. Modified: a.ts, b.ts, c.ts, +2 more`. For a later page: `Diff: 5 files, +234/-89
 *  lines. Hunks 41-60 of 75: c.ts, d.ts`. */
function compressDiff({ data }: CompressInput): string {
  const { files_changed, insertions = 0, deletions = 0 } = data;
  const what = data.staged === true ? "Diff (staged)" : "Diff";
  // The files are names, or items with a path.
  const given: readonly unknown[] = Array.isArray(data.files) ? data.files : [];
  const files = given
    .map((file) => (typeof file === "object" && file !== null ? (file as Partial<DiffHunk>).path : file))
    .filter((path) => typeof path === "string");
  const count = typeof files_changed === "number" ? files_changed : files.length;
  if (count === 0) return `${what}: no changes`;
  const sums = `${what}: ${count} ${count === 1 ? "file" : "files"}, +${insertions}/-${deletions} lines.`;
  return Number(data.offset) > 0 && data.hunks !== undefined
    ? `${sums} ${describePage(data)}`
    : `${sums} Modified: ${listNames(shortenNames(files), 3, count)}`;
}

/** Names what this page has. The sums are those of the whole diff on every page. */
function describePage({ offset, returned, total, hunks }: CompressInput["data"]): string {
  const first = Number(offset) + 1;
  const last = first + Number(returned) - 1;
  if (!(last >= first)) return `No hunks from ${first} on`;
  const range = `${first === last ? `Hunk ${first}` : `Hunks ${first}-${last}`}`;
  const paths = readWholeItems<DiffHunk>(hunks, ({ path }) => typeof path === "string").map(({ path }) => path);
  const all = typeof total === "number" ? ` of ${total}` : "";
  return `${range}${all}: ${listNames(shortenNames([...new Set(paths)]), 3)}`;
}

function shortenNames(paths: readonly string[]): string[] {
  return paths.map((path) => shortenLine(baseName(path), 40));
}

/** Like `git diff`, without the line of hashes. In other modes: like `git diff --name-status` or `--numstat`. */
function renderDiff({ hunks, files }: PageData): string {
  if (hunks === undefined) {
    return readWholeItems<FileStat>(files, ({ path }) => typeof path === "string")
      .map(renderStat)
      .join("\n");
  }
  const lines: string[] = [];
  let last: string | undefined;
  for (const hunk of readWholeItems<DiffHunk>(hunks, ({ path }) => typeof path === "string")) {
    const heading = renderHeading(hunk).join("\n");
    if (heading !== last) lines.push(heading);
    last = heading;
    if (hunk.header !== undefined) lines.push(hunk.header);
    if (hunk.text !== undefined) lines.push(hunk.text);
  }
  return lines.join("\n");
}

function renderStat({ path, change, from, binary, mode, insertions, deletions }: FileStat): string {
  const name = `${from === undefined ? "" : `${linePath(from)} => `}${linePath(path)}`;
  const changed = mode === undefined ? "" : ` (mode ${mode})`;
  const letters = { added: "A", deleted: "D", renamed: "R", copied: "C", conflict: "U" } as const;
  if (insertions === undefined) return `${change === undefined ? "M" : letters[change]} ${name}${changed}`;
  const kind = change === undefined || change === "renamed" ? "" : ` (${change})`;
  return `${binary ? "-\t-" : `${insertions}\t${deletions}`}\t${name}${kind}${changed}`;
}

function renderHeading({ path, change, from = path, binary, mode, hidden, header }: DiffHunk): string[] {
  if (change === "conflict")
    return [header === undefined ? `${unmerged}${linePath(path)}` : `diff --cc ${linePath(path)}`];
  const [oldName, newName] = [
    change === "added" ? "/dev/null" : linePath(`a/${from}`),
    change === "deleted" ? "/dev/null" : linePath(`b/${path}`),
  ];
  return [
    `diff --git ${linePath(`a/${from}`)} ${linePath(`b/${path}`)}`,
    ...(change === undefined
      ? []
      : [change === "added" || change === "deleted" ? `${change} file` : `${change} from ${linePath(from)}`]),
    ...(mode === undefined ? [] : [`mode ${mode}`]),
    ...(binary ? ["Binary files differ"] : []),
    ...(hidden ? ["[changes are hidden: the file usually has secrets]"] : []),
    ...(header === undefined ? [] : [`--- ${oldName}`, `+++ ${newName}`]),
  ];
}
