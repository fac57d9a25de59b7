/** The files that a generated agent works on. They stay what they are between two reads, and an edit shows in the next one. */
import type { Random, Size } from "./random.ts";
import { writeLines, writePath } from "./write-text.ts";

export interface Project {
  /** A file that nobody has read yet, whole; or one of those that were read, in part: most reads of an agent are re-reads. */
  read(): FileView;
  /** Some lines of a file that was read, before and after. */
  edit(lines: number): FileEdit;
  /** Lines from anywhere, as a search finds them. */
  find(lines: number): string[];
}

export interface FileView {
  readonly path: string;
  /** 1-based; absent where the whole file was read. */
  readonly offset: number | undefined;
  readonly text: string;
}

export interface FileEdit {
  readonly path: string;
  readonly before: string;
  readonly after: string;
  /** The surroundings after the edit. */
  readonly text: string;
}

export interface ProjectSizes {
  readonly rereadShare: number;
  /** Tokens of a whole file, lines of a partial read. */
  readonly file: Size;
  readonly lines: Size;
}

interface File {
  readonly path: string;
  readonly lines: string[];
}

export function createProject(random: Random, { rereadShare, file: fileSize, lines: lineSize }: ProjectSizes): Project {
  const files: File[] = [];
  const open = () => {
    const file = { path: writePath(random), lines: writeLines(random, "code", random.size(fileSize)) };
    files.push(file);
    return file;
  };
  // Agents go back to what they saw last rather than to what they saw first.
  const known = () => files[files.length - 1 - Math.floor(random.next() ** 2 * files.length)] ?? open();
  return {
    read() {
      if (files.length === 0 || !random.chance(rereadShare)) return view(open(), undefined);
      const file = known();
      const count = Math.min(Math.max(1, file.lines.length - 1), random.size(lineSize));
      return view(file, { offset: random.whole(1, file.lines.length - count + 1), count });
    },
    edit(lines) {
      return editFile(random, known(), lines);
    },
    find(lines) {
      return Array.from({ length: lines }, () => {
        const file = files.length > 0 && random.chance(0.5) ? random.pick(files) : undefined;
        const line = file === undefined ? writeLines(random, "code", 1)[0] : random.pick(file.lines);
        return `${file?.path ?? writePath(random)}:${random.whole(1, 900)}:${line}`;
      });
    },
  };
}

function view({ path, lines }: File, range: { offset: number; count: number } | undefined): FileView {
  const start = range?.offset ?? 1;
  return { path, offset: range?.offset, text: numbered(lines, start, range?.count ?? lines.length) };
}

function editFile(random: Random, file: File, wanted: number): FileEdit {
  const count = Math.min(wanted, file.lines.length);
  const start = random.whole(0, file.lines.length - count);
  const before = file.lines.slice(start, start + count);
  const after = before.map((line) => (random.chance(0.5) ? line : writeLines(random, "code", 1)[0]!));
  after.push(...writeLines(random, "code", 10 * random.whole(0, count)));
  file.lines.splice(start, count, ...after);
  const text = numbered(file.lines, Math.max(1, start), Math.min(after.length, 4));
  return { path: file.path, before: before.join("\n"), after: after.join("\n"), text };
}

function numbered(lines: readonly string[], start: number, count: number): string {
  return lines
    .slice(start - 1, start - 1 + count)
    .map((line, index) => `${String(start + index).padStart(6)}\t${line}`)
    .join("\n");
}
