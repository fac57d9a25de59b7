import { countNoun, printable } from "../../core/text/index.ts";
import { decodeBytes, type Environment, readGit, splitRecords } from "../../host/index.ts";
import type { FinishedWork } from "./application.ts";

/** Lines of a diff that a person is shown. */
const maxDiffLines = 400;

/** Returns what changed in a folder since a commit, and the names of new files. Empty outside of a repository. */
export async function diffWork(
  { folder, base = "HEAD" }: Omit<FinishedWork, "answer">,
  { env }: { readonly env: Environment },
): Promise<string> {
  const place = { root: folder, env, signal: AbortSignal.timeout(30_000) };
  const lines: string[] = [];
  const commands = [
    ["diff", base, "--", "."],
    ["ls-files", "--others", "--exclude-standard", "--", "."],
  ];
  for (const [index, args] of commands.entries()) {
    const git = await readGit(place, args);
    if ("refused" in git) return "";
    for await (const batch of splitRecords(git.output, "\n", "keep"))
      for (const line of batch) lines.push((index === 0 ? "" : "new file: ") + printable(decodeBytes(line)));
    await git.end;
  }
  const more = lines.length - maxDiffLines;
  const rest = more > 0 ? [`… and ${countNoun(more, "more line")}. See git -C ${printable(folder)} diff ${base}`] : [];
  return [...lines.slice(0, maxDiffLines), ...rest].join("\n");
}
