import { printable } from "../../text/index.ts";
import type { ContentProblem } from "../../workspace/index.ts";
import { shownPath } from "../shown-path.ts";
import type { ContentCall } from "./load-content.ts";

/** Tells what is wrong with the content. Returns whether something of it cannot be used: what can is shown all the same. */
export function tellProblems(
  problems: readonly ContentProblem[],
  { cwd, env, output }: Pick<ContentCall, "cwd" | "env" | "output">,
): boolean {
  for (const { file, line, severity, message } of problems) {
    const text = `${printable(shownPath(file, cwd, env))}:${line}: ${printable(message)}`;
    if (severity === "error") output.problem(text);
    else output.note(text);
  }
  return problems.some(({ severity }) => severity === "error");
}
