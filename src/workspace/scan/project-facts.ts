/** What a project says about itself: its name, languages, package managers and test commands, by the files in its root. */
import { readdir, realpath } from "node:fs/promises";
import { join, relative } from "node:path";
import { isSecretName } from "../../text/index.ts";
import { readRegularFile } from "../files/read-regular-file.ts";
import { isGitInternal, isInside } from "../files/resolve-target.ts";
import { detectors, type Stack } from "./project-stacks.ts";

export interface ProjectFact {
  readonly name: string;
  readonly value: string;
}

/** What whoever works in a project must know. The same files give the same facts; a project of several languages has several values. */
export async function detectFacts(root: string): Promise<ProjectFact[]> {
  return factsOf(await detectStacks(root));
}

/** The same for whoever has never seen it: with what it calls itself. */
export async function describeProject(root: string): Promise<ProjectFact[]> {
  const stacks = await detectStacks(root);
  return [...row("Module", stacks, (stack) => stack.module), ...factsOf(stacks)];
}

async function detectStacks(root: string): Promise<Stack[]> {
  const names = new Set((await readdir(root).catch(() => [])).sort());
  const read = async (name: string) => (names.has(name) ? readInside(join(root, name), root) : "");
  const stacks: Stack[] = [];
  for (const detect of detectors) {
    const stack = await detect({ names, has: (name) => names.has(name), read });
    if (stack !== undefined) stacks.push(stack);
  }
  return stacks;
}

function factsOf(stacks: readonly Stack[]): ProjectFact[] {
  return [
    ...row("Language", stacks, (stack) => stack.language),
    ...row("Package manager", stacks, (stack) => stack.manager),
    ...row("Test command", stacks, (stack) => stack.test),
  ];
}

function row(
  name: string,
  stacks: readonly Stack[],
  pick: (stack: Stack) => string | undefined,
): ProjectFact[] {
  const values = [...new Set(stacks.flatMap((stack) => pick(stack) || []))];
  return values.length === 0 ? [] : [{ name, value: values.join(", ") }];
}

/** A link may give a manifest another name; one that leads out of the project, or to a secret, is not read. */
async function readInside(path: string, root: string): Promise<string> {
  const [real, realRoot] = await Promise.all([realpath(path), realpath(root)]).catch(() => []);
  if (real === undefined || realRoot === undefined || !isInside(real, realRoot)) return "";
  if (isSecretName(real) || isGitInternal(relative(realRoot, real))) return "";
  const file = await readRegularFile(real);
  return Buffer.isBuffer(file) ? file.toString("utf8") : "";
}
