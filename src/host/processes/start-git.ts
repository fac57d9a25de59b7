/** Starts git so that nothing in a repository, including its own configuration, can choose a program. */

import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import type { Environment } from "../directories.ts";
import type { StartedProcess } from "./start-process.ts";

export interface GitPlace {
  readonly root: string;
  readonly env: Environment;
  /** Ends git. */
  readonly signal: AbortSignal;
}

/** The settings and variables of one use of git, besides those of every use. */
export interface GitUse {
  readonly settings?: readonly string[] | undefined;
  readonly variables: Environment;
  /** The names of variables with the prefix `GIT_` that are passed on. */
  readonly keptNames: RegExp;
}

export const noGitReason = "git is not installed, or not on PATH";

/** Returns `undefined` if there is no git. */
export async function startGit(
  { root, env, signal }: GitPlace,
  args: readonly string[],
  { settings = [], variables, keptNames }: GitUse,
): Promise<StartedProcess | undefined> {
  const safeOptions: readonly string[] = ["--no-pager", "--literal-pathspecs"];
  const program = await findProgram("git", env);
  if (program === undefined) return undefined;
  const kept = Object.entries(env).filter(([name]) => !name.startsWith("GIT_") || keptNames.test(name));
  const around = { ...Object.fromEntries(kept), GIT_TERMINAL_PROMPT: "0", LC_ALL: "C", ...variables };
  const options = [...safeOptions, ...[...safeSettings, ...settings].flatMap((each) => ["-c", each])];
  // Most commands start no program, and Node's module for it is slow to load.
  const { startProcess } = await import("./start-process.ts");
  return startProcess(program, [...options, ...args], { cwd: root, env: around, signal });
}

/** For every use, including a person's own servers. */
const safeSettings: readonly string[] = [
  // A folder that only looks like a repository may be part of a clone.
  "safe.bareRepository=explicit",
  "core.fsmonitor=false",
  "core.hooksPath=/dev/null",
  "protocol.ext.allow=never",
  "core.quotePath=false",
  "log.showSignature=false",
  "color.ui=false",
  "core.alternateRefsCommand=",
  "submodule.recurse=false",
];

/** A reading command contacts no server, so programs for servers and terminals are off too. */
export const reading: GitUse = {
  settings: [
    "protocol.allow=never",
    "core.sshCommand=false",
    "core.gitProxy=false",
    "core.askPass=false",
    "core.editor=false",
    "credential.helper=",
    "diff.external=",
    "interactive.diffFilter=",
    "gpg.program=false",
    "gpg.ssh.program=false",
    "gpg.x509.program=false",
    // Files that may be anywhere.
    "diff.orderFile=/dev/null",
    "mailmap.file=",
    "mailmap.blob=",
  ],
  variables: {
    // Without it `status` writes the index and could lock out the person's own git.
    GIT_OPTIONAL_LOCKS: "0",
    GIT_NO_LAZY_FETCH: "1",
    // Overrides every setting. Before 2.39.4 git fetches missing objects even with the variable above.
    GIT_ALLOW_PROTOCOL: "none",
  },
  // The user chooses which configuration files are read. Other variables could point git at another repository or
  // program.
  keptNames: /^GIT_(CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)|CEILING_DIRECTORIES|DISCOVERY_ACROSS_FILESYSTEM|EXEC_PATH)$/,
};

/** The protocols that git may use. */
export const gitProtocols: readonly string[] = ["file", "git", "http", "https", "ssh"];

/** For servers that a person chose, outside of any repository that the person did not write. */
export const connecting: GitUse = {
  variables: { GIT_ALLOW_PROTOCOL: gitProtocols.join(":") },
  // Git sets these inside a hook, and they would lead it to the current repository. How to reach a server is the user's
  // choice.
  keptNames:
    /^GIT_(?!(DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|COMMON_DIR|NAMESPACE|PREFIX)$)/,
};

/** Returns an address, or a text with addresses, without the passwords in it. A password may contain an `@`. */
export function withoutPasswords(text: string): string {
  return text.replace(/(\w[\w+.-]*:\/\/)[^/]*@/g, "$1");
}

/** Returns the line of stderr with the reason, without git's own prefix. */
export function gitReason(stderr: string): string {
  const lines = stderr.split("\n").filter((line) => line.trim() !== "");
  const told = lines.find((line) => /^(fatal|error):/.test(line)) ?? lines.at(-1) ?? "git failed";
  return told.replace(/^(fatal|error):\s*/, "").trim();
}

/** Returns the absolute path of a program on PATH. Ignores relative entries, and does not search the working directory
 *  as Windows would: a tree must not bring the program that reads it. */
export async function findProgram(name: string, env: Environment): Promise<string | undefined> {
  // Windows spells it Path.
  const directories = (env.PATH ?? env.Path ?? "").split(delimiter).filter(isAbsolute);
  const file = process.platform === "win32" ? `${name}.exe` : name;
  return directories.map((directory) => join(directory, file)).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return false;
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Returns the whole output of a program. */
export async function collectOutput(output: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of output) chunks.push(chunk);
  return Buffer.concat(chunks);
}
