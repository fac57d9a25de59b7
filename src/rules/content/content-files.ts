/** Reads the files of one content layer and collects their problems. A file that cannot be used never throws, so the
 *  others are read too. */
import { type Dirent, lstatSync, realpathSync, type Stats, statSync } from "node:fs";
import { decodeText, isInside, listForeign, readForeign, systemReason } from "../../host/index.ts";
import type { ContentProblem, Severity } from "./load-content.ts";

/** One layer while it is being read. */
export interface ContentScope {
  readonly directory: string;
  /** The severity of an unknown key. */
  readonly strictness: Severity;
  /** The folder that links must not leave. People link their own files, but a repository must not read files
   *  elsewhere. */
  readonly within: string | undefined;
  readonly problems: ContentProblem[];
}

/** No prompt can use larger files, and a mistake must not fill the memory. */
const maxContentBytes = 5 * 1024 * 1024;

/** Returns names in a fixed order, without hidden ones. A missing directory is empty. */
export function listContent(scope: ContentScope, directory: string): Dirent[] {
  try {
    if (lstatSync(directory, { throwIfNoEntry: false }) === undefined) return [];
    if (leaves(scope, directory)) return [];
    const entries = listForeign(directory, scope);
    if (!Array.isArray(entries)) {
      return report(scope, { file: directory, rule: "unreadable", message: entries.reason }) ?? [];
    }
    return entries.filter(({ name }) => !name.startsWith(".")).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    report(scope, { file: directory, rule: "unreadable", message: systemReason(error) });
    return [];
  }
}

/** Returns the text with LF line ends and without a byte order mark, since it becomes part of another file. */
export function readContentText(scope: ContentScope, file: string): string | undefined {
  const stats = statContent(scope, file);
  if (stats === undefined) return undefined;
  if (!stats.isFile()) {
    const message = stats.isDirectory() ? "is a directory, not a file" : "is not a regular file";
    return report(scope, { file, rule: "not-a-file", message });
  }
  if (stats.size > maxContentBytes) {
    const limit = `Files above ${maxContentBytes} bytes (5 MB) are not read.`;
    const message = `has ${stats.size} bytes. ${limit} Split it, or keep it out of the packs.`;
    return report(scope, { file, rule: "too-large", message });
  }
  const bytes = readForeign(file, { within: scope.within, maxBytes: maxContentBytes });
  if (!Buffer.isBuffer(bytes)) return report(scope, { file, rule: "unreadable", message: bytes.reason });
  const read = decodeText(bytes);
  if ("text" in read) return read.text.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  const line = Number(/in line (\d+)/.exec(read.reason)?.[1] ?? 1);
  return report(scope, { file, line, rule: "not-text", message: read.reason });
}

/** Returns the stats of the path, with links followed. Reports a path that cannot be used and returns `undefined`. */
export function statContent(scope: ContentScope, path: string): Stats | undefined {
  try {
    return leaves(scope, path) ? undefined : statSync(path);
  } catch (error) {
    return report(scope, { file: path, rule: "unreadable", message: systemReason(error) });
  }
}

/** Returns whether a path leads out of the layer, and reports it. */
function leaves(scope: ContentScope, path: string): boolean {
  if (scope.within === undefined || isInside(realpathSync(path), realpathSync(scope.within))) return false;
  const message = "is a symbolic link out of the content directory. Copy the file instead.";
  report(scope, { file: path, rule: "outside-link", message });
  return true;
}

/** Returns `undefined`, so a reader can end with it. */
export function report(
  scope: ContentScope,
  { line = 1, severity = "error", ...rest }: Omit<ContentProblem, "line" | "severity"> & Partial<ContentProblem>,
): undefined {
  scope.problems.push({ line, severity, ...rest });
}
