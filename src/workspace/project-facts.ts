/** What a project says about itself: its languages, package managers and test commands, by the files in its root. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { readRegularFile } from "./files/read-regular-file.ts";

export interface ProjectFact {
  readonly name: string;
  readonly value: string;
}

/** The same files give the same facts; a project of several languages has several values. */
export async function detectFacts(root: string): Promise<ProjectFact[]> {
  const names = new Set(await readdir(root).catch(() => []));
  const read = async (name: string) => {
    const file = names.has(name) ? await readRegularFile(join(root, name)) : undefined;
    return Buffer.isBuffer(file) ? file.toString("utf8") : "";
  };
  const stacks: Stack[] = [];
  for (const detect of detectors) {
    const stack = await detect({ has: (name) => names.has(name), read });
    if (stack !== undefined) stacks.push(stack);
  }
  const row = (name: string, pick: (stack: Stack) => string | undefined): ProjectFact[] => {
    const values = [...new Set(stacks.flatMap((stack) => pick(stack) ?? []))];
    return values.length === 0 ? [] : [{ name, value: values.join(", ") }];
  };
  return [
    ...row("Language", (stack) => stack.language),
    ...row("Package manager", (stack) => stack.manager),
    ...row("Test command", (stack) => stack.test),
  ];
}

interface Stack {
  readonly language: string;
  readonly manager?: string | undefined;
  readonly test?: string | undefined;
}

interface Root {
  has(name: string): boolean;
  /** Empty when the file is not there or cannot be read. */
  read(name: string): Promise<string>;
}

const detectors: readonly ((root: Root) => Promise<Stack | undefined>)[] = [
  detectNode,
  detectPython,
  async ({ has }) => (has("go.mod") ? { language: "Go", manager: "go", test: "go test ./..." } : undefined),
  async ({ has }) =>
    has("Cargo.toml") ? { language: "Rust", manager: "cargo", test: "cargo test" } : undefined,
  async ({ has }) => (has("pom.xml") ? { language: "Java", manager: "maven", test: "mvn test" } : undefined),
  async ({ has }) =>
    has("build.gradle") || has("build.gradle.kts")
      ? { language: "Java", manager: "gradle", test: has("gradlew") ? "./gradlew test" : "gradle test" }
      : undefined,
];

const nodeLocks: readonly (readonly [file: string, manager: string])[] = [
  ["pnpm-lock.yaml", "pnpm"],
  ["yarn.lock", "yarn"],
  ["bun.lock", "bun"],
  ["bun.lockb", "bun"],
  ["package-lock.json", "npm"],
];

async function detectNode({ has, read }: Root): Promise<Stack | undefined> {
  if (!has("package.json")) return undefined;
  const text = await read("package.json");
  const declared = /"packageManager"\s*:\s*"(\w+)@/.exec(text)?.[1];
  const manager = declared ?? nodeLocks.find(([file]) => has(file))?.[1] ?? "npm";
  const typed = has("tsconfig.json") || /"typescript"\s*:/.test(text);
  return {
    language: typed ? "TypeScript" : "JavaScript",
    manager,
    test: hasTestScript(text) ? `${manager}${manager === "bun" ? " run" : ""} test` : undefined,
  };
}

function hasTestScript(packageJson: string): boolean {
  try {
    const test: unknown = JSON.parse(packageJson).scripts?.test;
    // What `npm init` writes is no test.
    return typeof test === "string" && !test.includes("no test specified");
  } catch {
    return false;
  }
}

const pythonLocks: readonly (readonly [file: string, manager: string])[] = [
  ["uv.lock", "uv"],
  ["poetry.lock", "poetry"],
  ["pdm.lock", "pdm"],
  ["Pipfile.lock", "pipenv"],
];

async function detectPython({ has, read }: Root): Promise<Stack | undefined> {
  if (!["pyproject.toml", "setup.py", "requirements.txt", "Pipfile"].some(has)) return undefined;
  const manager = pythonLocks.find(([file]) => has(file))?.[1] ?? "pip";
  const usesPytest =
    has("pytest.ini") || has("conftest.py") || (await read("pyproject.toml")).includes("pytest");
  const prefix = manager === "pip" ? "" : `${manager} run `;
  return { language: "Python", manager, test: usesPytest ? `${prefix}pytest` : undefined };
}
