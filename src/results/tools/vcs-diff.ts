import { createHash } from "node:crypto";
import { cutText } from "../../core/text/index.ts";
import { decodeBytes, hashed, splitRecords } from "../../host/index.ts";
import { type BudgetedTool, type CompressInput, isFailure, type PageData, type ToolFailure } from "../session/index.ts";
import { createWindow, defineTool, describeWindow, type ToolAnswer } from "./define-tool.ts";
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
  belowRoot,
  gitFailure,
  listGitNotes,
  openRepository,
  type Repository,
  resolveCommit,
  startToolGit,
} from "./source/repository.ts";
import { isSecretPath, refuseSecret, secretWarning } from "./source/secret-paths.ts";
import { decodeLine } from "./source/text-encoding.ts";

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
  const paths = readWholeItems<DiffHunk>(hunks, "path").map(({ path }) => path);
  const all = typeof total === "number" ? ` of ${total}` : "";
  return `${range}${all}: ${listNames(shortenNames([...new Set(paths)]), 3)}`;
}

function shortenNames(paths: readonly string[]): string[] {
  return paths.map((path) => shortenLine(baseName(path), 40));
}

/** Like `git diff`, without the line of hashes. In other modes: like `git diff --name-status` or `--numstat`. */
function renderDiff({ hunks, files }: PageData): string {
  if (hunks === undefined) {
    return readWholeItems<FileStat>(files, "path").map(renderStat).join("\n");
  }
  const lines: string[] = [];
  let last: string | undefined;
  for (const hunk of readWholeItems<DiffHunk>(hunks, "path")) {
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

/** One hunk, or a file that changed without one: renamed, binary, another mode, or a conflict with nothing to
 *  compare. */
export interface DiffHunk extends FileChange {
  readonly path: string;
  /** `@@ -1,3 +1,4 @@ function open() {` */
  readonly header?: string;
  readonly text?: string;
  /** Set if the file usually has secrets. Its changes are not shown. */
  readonly hidden?: true;
}

/** A file with the number of its changed lines. */
interface FileStat extends FileChange {
  readonly path: string;
  readonly insertions?: number;
  readonly deletions?: number;
}

interface DiffReader {
  read(line: string): void;
  /** Ends the last hunk. */
  end(): void;
  /** Sums, and the first files. All names could fill a page, and the hunks have them too. */
  facts(): { files_changed: number; insertions: number; deletions: number; files: readonly string[] };
  /** Submodules with uncommitted changes. The diff says only that there are some. */
  dirtySubmodules(): readonly string[];
}

/** What git prints for a file in conflict that one side does not have. The name is not quoted. */
const unmerged = "* Unmerged path ";

/** Reads the output of `git diff` line by line, as byte strings. Calls `take` with each complete hunk, and with long ones
 *  in parts. */
export function createDiffReader(
  take: (hunk: DiffHunk) => void,
  options: {
    /** The path of the root in the repository. */
    readonly prefix?: string;
    /** Called after the last hunk of each file. */
    takeFile?(file: FileStat): void;
  } = {},
): DiffReader {
  const { prefix = "", takeFile = () => {} } = options;
  const counts = createCounts();
  const dirty: string[] = [];
  let header: string[] = [];
  let part: HunkPart | undefined;
  let hunks = 0;
  const finishPart = () => {
    if (part === undefined || part.lines.length === 0) return;
    take({ ...readFileChange(header, prefix), header: renderHeader(part), text: part.lines.join("\n") });
    hunks++;
  };
  const finishFile = () => {
    finishPart();
    if (header.length > 0) {
      const file = readFileChange(header, prefix);
      if (hunks === 0) take(file);
      // If only the files of a submodule differ and not its commit, there is no line with hashes.
      if (
        !header.some((line) => line.startsWith("index ") && !line.endsWith(" 160000")) &&
        part?.lines.at(-1)?.endsWith("-dirty")
      )
        dirty.push(file.path);
      counts.addFile(file.path);
      takeFile({ ...file, ...counts.takeLines() });
    }
    part = undefined;
    header = [];
    hunks = 0;
  };
  const readContent = (line: string, open: HunkPart) => {
    counts.addLine(line.slice(0, open.columns));
    if (open.lines.length >= 200 || open.characters > 8_000) {
      finishPart();
      const { given, columns, start, count } = open;
      const next = { old: start.old + count.old, new: start.new + count.new };
      part = { given, isFirst: false, columns, start: next, count: { old: 0, new: 0 }, lines: [], characters: 0 };
    }
    addLine(part ?? open, line);
  };
  const read = (line: string) => {
    // Lines of a file begin with a blank, + or -, so these are not lines of a file.
    if (line.startsWith("diff --")) {
      finishFile();
      header = [line];
    } else if (line.startsWith(unmerged)) {
      finishFile();
      const path = decodeBytes(line.slice(unmerged.length));
      take({ path, change: "conflict" });
      takeFile({ path, change: "conflict" });
      counts.addFile(path);
    } else if (line.startsWith("@@")) {
      finishPart();
      part = startPart(line);
    } else if (part !== undefined) readContent(line, part);
    else if (header.length > 0) header.push(line);
  };
  return { read, end: finishFile, facts: counts.facts, dirtySubmodules: () => dirty };
}

/** git ignores `--relative` for files in conflict. */
function readFileChange(header: readonly string[], prefix: string): DiffHunk {
  const path = readChangedPath(header);
  const after = (start: string) => header.find((line) => line.startsWith(start))?.slice(start.length);
  const from = after("rename from ") ?? after("copy from ");
  const [oldMode, newMode] = [after("old mode "), after("new mode ")];
  const added = after("new file mode ");
  return {
    path: header[0]?.startsWith("diff --cc") ? belowRoot(path, prefix) : path,
    ...(header[0]?.startsWith("diff --cc") ? { change: "conflict" } : {}),
    ...(added === undefined ? {} : { change: "added", ...(added === "100644" ? {} : { mode: added }) }),
    ...(after("deleted file mode ") === undefined ? {} : { change: "deleted" }),
    ...(from === undefined ? {} : { change: after("copy from ") ? "copied" : "renamed", from: unquote(from) }),
    ...(header.some((line) => /^(Binary files |GIT binary patch)/.test(line)) ? { binary: true } : {}),
    ...(oldMode === undefined || newMode === undefined ? {} : { mode: `${oldMode} → ${newMode}` }),
  };
}

function createCounts() {
  const counts = { files_changed: 0, insertions: 0, deletions: 0 };
  const files: string[] = [];
  let taken = { insertions: 0, deletions: 0 };
  let last: string | undefined;
  return {
    addFile: (path: string): void => {
      // A file that became a link is listed twice, once deleted and once added. A file in conflict can be too.
      if (path === last) return;
      last = path;
      counts.files_changed++;
      if (files.length < 20) files.push(path);
    },
    /** The characters before the line, one column for each old side. */
    addLine: (marks: string): void => {
      if (marks.includes("+")) counts.insertions++;
      if (marks.includes("-")) counts.deletions++;
    },
    /** Returns the changed lines since the last call. */
    takeLines: () => {
      const { insertions, deletions } = counts;
      const before = taken;
      taken = { insertions, deletions };
      return { insertions: insertions - before.insertions, deletions: deletions - before.deletions };
    },
    facts: () => ({ ...counts, files }),
  };
}

/** What the lines before the first hunk of a file say. */
interface FileChange {
  readonly change?: "added" | "deleted" | "renamed" | "copied" | "conflict";
  /** The path before the change. */
  readonly from?: string;
  readonly binary?: true;
  /** `100644 → 100755`, or the mode of a new file if it is not the usual one. */
  readonly mode?: string;
}

/** The path after the change, or the old path if the file is gone. */
function readChangedPath(header: readonly string[]): string {
  for (const start of ["+++ ", "--- ", "rename to ", "copy to "]) {
    const line = header.find((each) => each.startsWith(start));
    if (line === undefined || line === `${start}/dev/null`) continue;
    const name = unquote(line.slice(start.length));
    return start.endsWith("to ") ? name : name.slice(2);
  }
  // Without hunks the name occurs only here, twice: `diff --git a/NAME b/NAME`. A conflict has it once.
  const first = header[0] ?? "";
  const names = first.replace(/^diff --(git|cc|combined) /, "");
  if (!first.startsWith("diff --git")) return unquote(names);
  return unquote(names.slice(0, (names.length - 1) / 2)).slice(2);
}

/** git quotes a name that has control characters, quotes or backslashes. It adds a tab after a name with blanks. */
function unquote(name: string): string {
  if (!name.startsWith('"')) return decodeBytes(name.replace(/\t$/, ""));
  const escapes: Readonly<Record<string, string>> = { a: "\x07", b: "\b", t: "\t", n: "\n", v: "\v", f: "\f", r: "\r" };
  const bytes = name.slice(1, name.lastIndexOf('"')).replace(/\\([0-7]{3}|.)/g, (_, code: string) => {
    if (code.length === 3) return String.fromCharCode(Number.parseInt(code, 8));
    return escapes[code] ?? code;
  });
  return decodeBytes(bytes);
}

/** A hunk, or a part of a long one, while its lines are read. */
interface HunkPart {
  /** The header as git wrote it. */
  readonly given: string;
  readonly isFirst: boolean;
  /** Columns before each line, one for each old side. A conflict has two. */
  readonly columns: number;
  readonly start: { readonly old: number; readonly new: number };
  readonly count: { old: number; new: number };
  readonly lines: string[];
  characters: number;
}

const maxLineCharacters = 2_000;
/** Only this part of a longer line of git's output is read. */
const maxCounted = 1_000_000;

/** Lines are byte strings. */
function startPart(header: string): HunkPart {
  const given = decodeBytes(header.slice(0, maxLineCharacters));
  const [, old, now] = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(given) ?? [];
  const columns = given.search(/[^@]/) - 1;
  const start = { old: Number(old ?? 0), new: Number(now ?? 0) };
  return { given, isFirst: true, columns, start, count: { old: 0, new: 0 }, lines: [], characters: 0 };
}

function addLine(part: HunkPart, line: string): void {
  if (!line.startsWith("+") && !line.startsWith("\\")) part.count.old++;
  if (!line.startsWith("-") && !line.startsWith("\\")) part.count.new++;
  const { text, omitted } = cutText(decodeLine(line, { keepsReturn: true }), maxLineCharacters);
  const left = omitted < maxCounted ? omitted : `at least ${maxCounted}`;
  const kept = omitted > 0 ? `${text}… [${left} more characters]` : text;
  part.lines.push(kept);
  part.characters += kept.length + 1;
}

/** A part has the real line numbers. The hunk of a merge has several old sides and keeps git's header. */
function renderHeader({ given, isFirst, start, count }: HunkPart): string {
  const heading = /^@@ [^@]+ @@(.*)$/.exec(given)?.[1];
  if (heading === undefined) return isFirst ? given : `${given} (continued)`;
  return `@@ -${start.old},${count.old} +${start.new},${count.new} @@${heading}`;
}
