/** The folder of a command, with paths as the person sees them. */
import { relative, resolve } from "node:path";
import { type LoadedNebula, loadNebula, type Nebula, type NebulaProblem } from "../../agent/index.ts";
import { ContextError } from "../../errors.ts";
import { printable } from "../../text/index.ts";
import type { ArgumentSpec, Call } from "../command.ts";

export const folderArgument: ArgumentSpec = { name: "DIR", summary: "the folder with nebula.toml" };

type FolderCall = Pick<Call, "arguments" | "cwd" | "output">;

/** Paths of problems are relative to the current directory. */
export async function readNebula({ arguments: [folder = "."], cwd }: FolderCall): Promise<LoadedNebula> {
  try {
    const loaded = await loadNebula(resolve(cwd, folder));
    const problems = loaded.problems.map((each) => ({ ...each, file: relative(cwd, each.file) }));
    return { ...loaded, problems };
  } catch (error) {
    if (!(error instanceof ContextError) || error.file === undefined) throw error;
    const { code, message, hint, file, line, cause } = error;
    throw new ContextError(code, message, { hint, file: relative(cwd, file), line, cause });
  }
}

export interface UsableNebula extends Pick<LoadedNebula, "agentSettings"> {
  readonly nebula: Nebula;
}

/** A nebula without errors: warnings are told, as notes unless said otherwise, and with an error among the problems nothing goes on. */
export async function usableNebula(
  call: FolderCall,
  warn: (problem: NebulaProblem) => void = (problem) => call.output.note(problemLine(problem)),
): Promise<UsableNebula> {
  const { nebula, problems, agentSettings } = await readNebula(call);
  const [first, ...rest] = problems.filter(({ severity }) => severity === "error");
  for (const problem of problems) if (problem.severity === "warning") warn(problem);
  if (nebula !== undefined) return { nebula, agentSettings };
  const { message, file, line } = first!;
  throw new ContextError("invalid_content", [message, ...rest.map(problemLine)].join("\n"), { file, line });
}

function problemLine({ file, line, message }: NebulaProblem): string {
  return `${printable(file)}:${line}: ${printable(message)}`;
}
