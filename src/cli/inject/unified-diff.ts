import { fromByteString } from "../../text/index.ts";
import type { FileChange } from "../../workspace/index.ts";

/** Makes unified diffs of changes, paths as `shown` names them. The library is loaded for this alone. */
export async function createDiff(shown: (path: string) => string): Promise<(change: FileChange) => string> {
  const { createTwoFilesPatch } = await import("diff");
  return ({ path, before, after }) => {
    if (before === after) return "";
    const name = shown(path);
    const [from, to] = [before, after].map((side) => (side === undefined ? "/dev/null" : name)) as [
      string,
      string,
    ];
    const patch = createTwoFilesPatch(from, to, textOf(before), textOf(after), undefined, undefined, {
      context: 3,
    });
    // The library begins with what divides patches of several files.
    return patch.replace(/^(?:Index: .*\n)?=+\n/, "");
  };
}

function textOf(bytes: string | undefined): string {
  return bytes === undefined ? "" : fromByteString(bytes);
}
