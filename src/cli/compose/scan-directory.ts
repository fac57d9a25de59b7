import { join } from "node:path";
import type { ProjectScan } from "../../compose/index.ts";
import { countNoun, printable } from "../../text/index.ts";
import { loadConfig, scanProject } from "../../workspace/index.ts";
import type { Call } from "../command.ts";
import { noteLeftOut } from "../trust.ts";

/** A project's scan, with progress and what could not be read on stderr. `shownAs` stands before the names of files. */
export async function scanDirectory(
  directory: string,
  call: Pick<Call, "cwd" | "env" | "output">,
  shownAs = ".",
): Promise<ProjectScan> {
  const { env, output } = call;
  output.progress("listing files");
  const onProgress = (paths: number) => output.progress(`listed ${countNoun(paths, "file")}`);
  const { values: secrets, leftOut } = await loadConfig({ cwd: directory, env });
  noteLeftOut(
    leftOut.filter(({ key }) => key === "allow"),
    call,
  );
  const scan = await scanProject(directory, { env, secrets, onProgress });
  for (const { path, reason } of scan.problems) output.note(`${printable(join(shownAs, path))}: ${reason}`);
  return scan;
}
