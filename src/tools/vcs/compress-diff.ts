import type { CompressInput } from "../../session/index.ts";
import { baseName, listNames, shortened } from "../frame/phrases.ts";

/** `Diff: 5 files, +234/-89 lines. Modified: a.ts, b.ts, c.ts, +2 more` */
export function compressDiff({ data }: CompressInput): string {
  const { files_changed, insertions = 0, deletions = 0 } = data;
  const what = data.staged === true ? "Diff (staged)" : "Diff";
  const files = Array.isArray(data.files) ? data.files.filter((file) => typeof file === "string") : [];
  const count = typeof files_changed === "number" ? files_changed : files.length;
  if (count === 0) return `${what}: no changes`;
  const names = files.map((file) => shortened(baseName(file), 40));
  return `${what}: ${count} ${count === 1 ? "file" : "files"}, +${insertions}/-${deletions} lines. Modified: ${listNames(names, 3, count)}`;
}
