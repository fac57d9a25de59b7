/** Reads the output of `git diff` line by line and gives its hunks, long ones in parts. */
import { decodeBytes } from "../../../workspace/index.ts";
import { belowRoot } from "../repository.ts";
import { changeOf, type FileChange, isSubmodule, nameOf } from "./diff-header.ts";
import { addLine, headerOf, isFull, nextPart, type Part, partOf } from "./diff-part.ts";

/** One hunk, or a file that changed without one: renamed, binary, another mode, a conflict with nothing to compare. */
export interface DiffHunk extends FileChange {
  readonly path: string;
  /** `@@ -1,3 +1,4 @@ function open() {` */
  readonly header?: string;
  readonly text?: string;
  /** The file usually holds secrets: what changed in it is not told. */
  readonly hidden?: true;
}

export interface DiffReader {
  read(line: string): void;
  /** After the last line. */
  end(): void;
  facts(): DiffFacts;
  /** Submodules with changes that are in no commit of theirs: the diff says only that there are some. */
  dirtySubmodules(): readonly string[];
}

export interface DiffFacts {
  readonly files_changed: number;
  readonly insertions: number;
  readonly deletions: number;
  /** The first ones: the names of all could fill a page by themselves, and the hunks tell them. */
  readonly files: readonly string[];
}

const mostNames = 20;

/** What git says of a file in conflict that one side does not have. The name is not quoted. */
const unmerged = "* Unmerged path ";

/** Lines are byte strings. `take` gets each hunk when it is complete. `prefix`: where the root lies in the repository. */
export function createDiffReader(take: (hunk: DiffHunk) => void, prefix = ""): DiffReader {
  const counts = createCounts();
  const dirty: string[] = [];
  let header: string[] = [];
  let part: Part | undefined;
  let hunks = 0;
  const finishPart = () => {
    if (part === undefined || part.lines.length === 0) return;
    take({ ...fileOf(header, prefix), header: headerOf(part), text: part.lines.join("\n") });
    hunks++;
  };
  const finishFile = () => {
    finishPart();
    if (header.length > 0) {
      const file = fileOf(header, prefix);
      if (hunks === 0) take(file);
      if (isSubmodule(header) && part?.lines.at(-1)?.endsWith("-dirty")) dirty.push(file.path);
      counts.addFile(file.path);
    }
    part = undefined;
    header = [];
    hunks = 0;
  };
  const readContent = (line: string, open: Part) => {
    counts.addLine(line.slice(0, open.columns));
    if (isFull(open)) {
      finishPart();
      part = nextPart(open);
    }
    addLine(part ?? open, line);
  };
  const read = (line: string) => {
    // Lines of a file begin with a blank, + or -, so these can be none.
    if (line.startsWith("diff --")) {
      finishFile();
      header = [line];
    } else if (line.startsWith(unmerged)) {
      finishFile();
      const path = decodeBytes(line.slice(unmerged.length));
      take({ path, change: "conflict" });
      counts.addFile(path);
    } else if (line.startsWith("@@")) {
      finishPart();
      part = partOf(line);
    } else if (part !== undefined) readContent(line, part);
    else if (header.length > 0) header.push(line);
  };
  return { read, end: finishFile, facts: counts.facts, dirtySubmodules: () => dirty };
}

/** For files in conflict git does not heed `--relative`. */
function fileOf(header: readonly string[], prefix: string): DiffHunk {
  const path = nameOf(header);
  return {
    path: header[0]?.startsWith("diff --cc") ? belowRoot(path, prefix) : path,
    ...changeOf(header),
  };
}

interface Counts {
  addFile(path: string): void;
  /** What stands before the line, a column for each old side. */
  addLine(marks: string): void;
  facts(): DiffFacts;
}

function createCounts(): Counts {
  const counts = { files_changed: 0, insertions: 0, deletions: 0 };
  const files: string[] = [];
  let last: string | undefined;
  return {
    addFile: (path) => {
      // A file that became a link comes as two, one deleted and one added, and so may one in conflict.
      if (path === last) return;
      last = path;
      counts.files_changed++;
      if (files.length < mostNames) files.push(path);
    },
    addLine: (marks) => {
      if (marks.includes("+")) counts.insertions++;
      if (marks.includes("-")) counts.deletions++;
    },
    facts: () => ({ ...counts, files }),
  };
}
