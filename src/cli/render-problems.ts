import { countNoun, printable } from "../core/text/index.ts";
import { type Caller, shownPath } from "../host/index.ts";
import type { ContentProblem } from "../rules/index.ts";

/** Renders one line per problem, then the totals. */
export function renderProblems(
  problems: readonly ContentProblem[],
  checked: { readonly count: number; readonly noun: string },
): string {
  const lines = problems.map(
    ({ file, line, severity, rule, message }) =>
      `${printable(file)}:${line}: ${severity} ${rule}: ${printable(message)}`,
  );
  const total = (severity: string) => problems.filter((each) => each.severity === severity).length;
  const found = `${countNoun(total("error"), "error")}, ${countNoun(total("warning"), "warning")}`;
  return [...lines, `${countNoun(checked.count, checked.noun)}: ${found}`].join("\n");
}

/** Prints problems of the content. Returns whether some content cannot be used. */
export function reportProblems(problems: readonly ContentProblem[], { cwd, env, output }: Caller): boolean {
  for (const { file, line, severity, message } of problems) {
    const text = `${printable(shownPath(file, cwd, env))}:${line}: ${printable(message)}`;
    if (severity === "error") output.problem(text);
    else output.note(text);
  }
  return problems.some(({ severity }) => severity === "error");
}
