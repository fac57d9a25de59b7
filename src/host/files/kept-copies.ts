/** Copies of people's text that `--force` overwrites: beside the file, with `.bak` at the end. */
import { existsSync } from "node:fs";
import type { ContextError } from "../../core/errors.ts";
import { type AttemptOptions, attemptChange } from "./change-file.ts";

/** Returns the copies of a file that runs with `force` kept. */
export function keptCopies(path: string): string[] {
  const copies: string[] = [];
  for (let copy = copyName(path, 0); existsSync(copy); copy = copyName(path, copies.length)) copies.push(copy);
  return copies;
}

function copyName(path: string, number: number): string {
  return `${path}.bak${number === 0 ? "" : `.${number}`}`;
}

/** Copies to the first `.bak` name that is free or already holds the same content. Returns the problem if it fails. */
export async function keepCopy(
  path: string,
  content: string,
  options: Omit<AttemptOptions<unknown>, "plan">,
): Promise<ContextError | undefined> {
  for (let number = 0; ; number++) {
    const copy = copyName(path, number);
    const plan = (current: string | undefined) => ({ after: current ?? content, facts: undefined });
    const { change, problem } = await attemptChange(copy, { ...options, plan });
    if (problem !== undefined || change.after === content) return problem;
  }
}
