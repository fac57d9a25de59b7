import { fromByteString } from "../../core/text/index.ts";
import type { FileChange } from "./change-file.ts";

/** Creates unified diffs with paths from `shown`. Loads the diff library only here. */
export async function createDiff(shown: (path: string) => string): Promise<(change: FileChange) => string> {
  // Most lines that may differ. The library takes quadratic time: half a million lines took minutes.
  const maxEdits = 2_000;
  const { createTwoFilesPatch } = await import("diff");
  return ({ path, before, after }) => {
    if (before === after) return "";
    const name = shown(path);
    const [from, to] = [before, after].map((side) => (side === undefined ? "/dev/null" : name)) as [string, string];
    const [old, text] = [fromByteString(before ?? ""), fromByteString(after ?? "")];
    const options = { context: 3, maxEditLength: maxEdits };
    const patch: string | undefined = createTwoFilesPatch(from, to, old, text, undefined, undefined, options);
    // The library starts a patch with a separator line.
    return patch?.replace(/^(?:Index: .*\n)?=+\n/, "") ?? wholePatch({ from, to, old, text });
  };
}

/** A patch that removes all old lines and adds all new ones. */
function wholePatch({ from, to, old, text }: Readonly<Record<"from" | "to" | "old" | "text", string>>): string {
  const [removed, added] = [splitDiffLines(old), splitDiffLines(text)];
  const span = ({ length }: readonly string[]) => `${length === 0 ? 0 : 1},${length}`;
  const marked = (lines: readonly string[], mark: "-" | "+") =>
    lines.map((line) => mark + (line.endsWith("\n") ? line : `${line}\n\\ No newline at end of file\n`)).join("");
  const header = `--- ${from}\n+++ ${to}\n@@ -${span(removed)} +${span(added)} @@\n`;
  return header + marked(removed, "-") + marked(added, "+");
}

function splitDiffLines(text: string): readonly string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}
