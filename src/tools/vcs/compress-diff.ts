import type { CompressInput } from "../../session/index.ts";
import { baseName, listNames, shortened, wholeItems } from "../frame/phrases.ts";
import type { DiffHunk } from "./output/diff-hunks.ts";

/** `Diff: 5 files, +234/-89 lines. Modified: a.ts, b.ts, c.ts, +2 more`; of a later page
 *  `Diff: 5 files, +234/-89 lines. Hunks 41-60 of 75: c.ts, d.ts`. */
export function compressDiff({ data }: CompressInput): string {
  const { files_changed, insertions = 0, deletions = 0 } = data;
  const what = data.staged === true ? "Diff (staged)" : "Diff";
  const files = Array.isArray(data.files) ? data.files.filter((file) => typeof file === "string") : [];
  const count = typeof files_changed === "number" ? files_changed : files.length;
  if (count === 0) return `${what}: no changes`;
  const sums = `${what}: ${count} ${count === 1 ? "file" : "files"}, +${insertions}/-${deletions} lines.`;
  return Number(data.offset) > 0
    ? `${sums} ${pagePhrase(data)}`
    : `${sums} Modified: ${listNames(namesOf(files), 3, count)}`;
}

/** What this page has: the sums are those of the whole diff on every page. */
function pagePhrase({ offset, returned, total, hunks }: CompressInput["data"]): string {
  const first = Number(offset) + 1;
  const last = first + Number(returned) - 1;
  if (!(last >= first)) return `No hunks from ${first} on`;
  const range = `${first === last ? `Hunk ${first}` : `Hunks ${first}-${last}`}`;
  const paths = wholeItems<DiffHunk>(hunks, ({ path }) => typeof path === "string").map(({ path }) => path);
  const all = typeof total === "number" ? ` of ${total}` : "";
  return `${range}${all}: ${listNames(namesOf([...new Set(paths)]), 3)}`;
}

function namesOf(paths: readonly string[]): string[] {
  return paths.map((path) => shortened(baseName(path), 40));
}
