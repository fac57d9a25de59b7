/** Reads the output of `git diff` line by line. Returns its hunks, long ones in parts. */
import { cutText } from "../../core/text/index.ts";
import { decodeBytes } from "../../host/index.ts";
import { belowRoot } from "./source/repository.ts";
import { decodeLine } from "./source/text-encoding.ts";

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
export interface FileStat extends FileChange {
  readonly path: string;
  readonly insertions?: number;
  readonly deletions?: number;
}

export interface DiffReader {
  read(line: string): void;
  /** Ends the last hunk. */
  end(): void;
  facts(): DiffFacts;
  /** Submodules with uncommitted changes. The diff says only that there are some. */
  dirtySubmodules(): readonly string[];
}

interface DiffFacts {
  readonly files_changed: number;
  readonly insertions: number;
  readonly deletions: number;
  /** Only the first ones. All names could fill a page, and the hunks have them too. */
  readonly files: readonly string[];
}

/** What git prints for a file in conflict that one side does not have. The name is not quoted. */
export const unmerged = "* Unmerged path ";

/** Lines are byte strings. Calls `take` with each complete hunk. */
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
  let part: Part | undefined;
  let hunks = 0;
  const finishPart = () => {
    if (part === undefined || part.lines.length === 0) return;
    take({ ...readFile(header, prefix), header: renderHeader(part), text: part.lines.join("\n") });
    hunks++;
  };
  const finishFile = () => {
    finishPart();
    if (header.length > 0) {
      const file = readFile(header, prefix);
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
  const readContent = (line: string, open: Part) => {
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
function readFile(header: readonly string[], prefix: string): DiffHunk {
  const path = readName(header);
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
    facts: (): DiffFacts => ({ ...counts, files }),
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
function readName(header: readonly string[]): string {
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
interface Part {
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
function startPart(header: string): Part {
  const given = decodeBytes(header.slice(0, maxLineCharacters));
  const [, old, now] = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(given) ?? [];
  const columns = given.search(/[^@]/) - 1;
  const start = { old: Number(old ?? 0), new: Number(now ?? 0) };
  return { given, isFirst: true, columns, start, count: { old: 0, new: 0 }, lines: [], characters: 0 };
}

function addLine(part: Part, line: string): void {
  if (!line.startsWith("+") && !line.startsWith("\\")) part.count.old++;
  if (!line.startsWith("-") && !line.startsWith("\\")) part.count.new++;
  const { text, omitted } = cutText(decodeLine(line, { keepsReturn: true }), maxLineCharacters);
  const left = omitted < maxCounted ? omitted : `at least ${maxCounted}`;
  const kept = omitted > 0 ? `${text}… [${left} more characters]` : text;
  part.lines.push(kept);
  part.characters += kept.length + 1;
}

/** A part has the real line numbers. The hunk of a merge has several old sides and keeps git's header. */
function renderHeader({ given, isFirst, start, count }: Part): string {
  const heading = /^@@ [^@]+ @@(.*)$/.exec(given)?.[1];
  if (heading === undefined) return isFirst ? given : `${given} (continued)`;
  return `@@ -${start.old},${count.old} +${start.new},${count.new} @@${heading}`;
}
