/** Runs the steps of a documentation page in one shell, and compares what they print with what the page shows. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createTwoFilesPatch } from "diff";
import { generateBilledSession } from "../generate/billed-sessions.ts";
import { generateSession } from "../generate/generate-session.ts";
import { readPage, type Step, seam } from "./read-page.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const setups = fileURLToPath(new URL("setups", import.meta.url));
const waitMs = 150_000;

/** A file of the documentation. */
export interface Source {
  /** Relative to the repository, such as `docs/inject.md`. */
  readonly name: string;
  readonly text: string;
}

/** What differs from run to run. It is not compared: both sides get the same sign in its place. */
const varying: readonly (readonly [what: string, pattern: RegExp, sign: string])[] = [
  ["an instant", /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "<instant>"],
  ["a minute", /\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?/g, "<minute>"],
  ["a duration", / *(?<![\w.,])\d+(\.\d+)? (ms|s|seconds?)(?!\w)/g, " <duration>"],
  ["replay's column ms/turn", / +\d+\.\d{3}$/g, " <ms>"],
  ["a random id", /[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, "<uuid>"],
  ["the hash of a directory", /(?<=\b(mcp|wrap)-\w+-)[\da-f]{10}\b/g, "<hash>"],
  // A server's session is named after its folder, and its ids come from that name.
  ["the id of a result", /(?<= id |token=|token: '|^ {2}|recalled )[a-z2-7]{16}(?=[\]:, ]|$)/g, "<id>"],
  ["the folder of an agent's attempt", /(?<=\/runs\/\S+\.\d+-)[\da-f]{8}\b/g, "<random>"],
  ["the hashes of a plan and its store", /(?<=\/runs\/\w+-)[\da-f]{10}-[\da-f]{10}(?=\/)/g, "<hashes>"],
  ["the day of a discovery", /(?<=, )\d{4}-\d\d-\d\d(?=, d\d+\))/g, "<day>"],
  ["the number of a process", /(?<=\b(pid|process|kill -9) )\d+/g, "<pid>"],
];

/** Creates the directory in which pages run, with the built command and package for all of them. */
export function createScratch(): string {
  const scratch = mkdtempSync(join(tmpdir(), "plimsoll-docs-"));
  const bin = join(scratch, "bin");
  mkdirSync(bin);
  const command = `#!/bin/sh\nexec "${process.execPath}" "${join(root, "dist/cli/main.js")}" "$@"\n`;
  writeFileSync(join(bin, "plimsoll"), command);
  chmodSync(join(bin, "plimsoll"), 0o755);
  mkdirSync(join(scratch, "node_modules"));
  symlinkSync(root, join(scratch, "node_modules/plimsoll"), "junction");
  for (const name of ["@anthropic-ai", "openai", "ai", "zod", "@types"]) {
    symlinkSync(join(root, "node_modules", name), join(scratch, "node_modules", name), "junction");
  }
  writeSessions(join(scratch, "sessions"));
  writeBilledSessions(join(scratch, "billed"));
  return scratch;
}

/** The sessions that pages replay: `run-1.jsonl` to `run-8.jsonl`, of 300 calls each. */
function writeSessions(folder: string): void {
  mkdirSync(folder);
  for (let seed = 1; seed <= 8; seed++) {
    const { messages } = generateSession({ seed, turns: 300 });
    const lines = messages.map((message) => JSON.stringify(message));
    writeFileSync(join(folder, `run-${seed}.jsonl`), lines.join("\n"));
  }
}

/** `1.jsonl` to `3.jsonl` are recordings of Claude Code, `4.jsonl` is one of Codex. */
function writeBilledSessions(folder: string): void {
  mkdirSync(folder);
  for (let seed = 1; seed <= 4; seed++) {
    const agent = seed === 4 ? "codex" : "claude-code";
    const { text } = generateBilledSession({ seed: seed + 40, agent, calls: 40 + 20 * seed });
    writeFileSync(join(folder, `${seed}.jsonl`), text);
  }
}

export interface Problem {
  /** Says the page, the line and the difference. */
  readonly text: string;
  /** The output that the page should show, if that is the problem. */
  readonly output?: {
    readonly line: number;
    readonly shown: readonly string[];
    readonly got: readonly string[];
  };
}

/** Runs a page and returns what is wrong with it. The programs must be written first. */
export async function runPage(source: Source, scratch: string): Promise<Problem[]> {
  const page = readPage(source.name, source.text);
  const place = placeOf(source, scratch);
  const project = join(place, "home/me/shop");
  mkdirSync(project, { recursive: true });
  mkdirSync(join(place, "tmp"));
  writeFileSync(join(place, "page.sh"), scriptOf(page.steps, place));
  await runShell(place, { cwd: project, scratch });
  const mistakes = page.mistakes.map((text) => ({ text }));
  const isMissing = (step: Step, index: number) =>
    !(step.kind === "program" && !step.runs) && !existsSync(join(place, `${index}.status`));
  const end = page.steps.findIndex(isMissing);
  const ran = page.steps.slice(0, end === -1 ? undefined : end);
  const problems = ran.flatMap((step, index) => problemOf(step, { source, index, place }));
  const stopped = page.steps.slice(ran.length, ran.length + 1).map(({ line }) => ({
    text: `${source.name}:${line}: the page did not run beyond this\n${printedBy(end, place).join("\n")}`,
  }));
  return [...mistakes, ...problems, ...stopped];
}

/** Returns the page with the output that was printed. Output that leaves lines out (`…`) stays as it is. */
export function updatePage({ text }: Source, problems: readonly Problem[]): string {
  const lines = text.split("\n");
  for (const { output } of problems.toReversed()) {
    if (output === undefined || output.shown.includes("…")) continue;
    lines.splice(output.line - 1, output.shown.length, ...output.got);
  }
  return lines.join("\n");
}

/** Writes the `js` and `ts` blocks of all pages, type-checks those that ask for it and compiles the `ts` blocks. */
export async function writePrograms(sources: readonly Source[], scratch: string): Promise<string[]> {
  const checked = new Map<string, string>();
  for (const source of sources) {
    mkdirSync(placeOf(source, scratch), { recursive: true });
    for (const [index, step] of readPage(source.name, source.text).steps.entries()) {
      if (step.kind !== "program") continue;
      const file = join(placeOf(source, scratch), `${index}.${step.typed ? "mts" : "mjs"}`);
      writeFileSync(file, step.text);
      if (step.typed || !step.runs) checked.set(file, `${source.name}:${step.line}`);
    }
  }
  if (checked.size === 0) return [];
  const compilerOptions = {
    ...{ target: "es2023", module: "nodenext", types: ["node"], strict: true, noImplicitAny: false },
    ...{ allowJs: true, checkJs: true, skipLibCheck: true, outDir: "compiled", rootDir: "." },
  };
  writeFileSync(join(scratch, "tsconfig.json"), JSON.stringify({ compilerOptions, files: [...checked.keys()] }));
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const { stdout } = await promisify(execFile)(process.execPath, [compiler, "-p", "."], {
    cwd: scratch,
  }).catch((error) => error);
  return typeErrors(stdout, { checked, scratch });
}

function typeErrors(
  output: string,
  { checked, scratch }: { checked: ReadonlyMap<string, string>; scratch: string },
): string[] {
  return output
    .trim()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.replace(/^(\S+\.m[jt]s)\b/, (file) => checked.get(join(scratch, file)) ?? file));
}

function placeOf({ name }: Source, scratch: string): string {
  return join(scratch, name.replace(/\W/g, "-"));
}

/** One script for the page, so that `cd` and variables hold from block to block. */
function scriptOf(steps: readonly Step[], place: string): string {
  const lines = steps.map((step, index) => {
    const file = join(place, String(index));
    const report = `>"${file}.out" 2>&1; last=$?; echo "$last" >"${file}.status"`;
    if (step.kind === "setup") return `. "${join(setups, `${step.name}.sh`)}" ${report}`;
    if (step.kind === "file") {
      writeFileSync(`${file}.text`, step.text);
      return `{ mkdir -p "$(dirname "${step.path}")" && cp "${file}.text" "${step.path}"; } ${report}`;
    }
    if (step.kind === "program") {
      if (!step.runs) return "";
      const compiled = join(dirname(place), "compiled", place.slice(dirname(place).length + 1));
      const program = step.typed ? join(compiled, `${index}.mjs`) : `${file}.mjs`;
      return `node "${program}" ${report}`;
    }
    writeFileSync(`${file}.sh`, `${step.text}\n`);
    if (step.kind === "command") return `{ status "$last"; . "${file}.sh"; } ${report}`;
    // A script stops at its first failure, and what follows goes on in the directory where it ended.
    return `( set -e; . "${file}.sh"; pwd >"${file}.cwd" ) ${report}\n[ "$last" = 0 ] && cd "$(cat "${file}.cwd")"`;
  });
  return ["last=0", 'status() { return "$1"; }', ...lines, ""].join("\n");
}

async function runShell(place: string, { cwd, scratch }: { cwd: string; scratch: string }): Promise<void> {
  const instant = "2026-01-05T12:00:00Z";
  const person = { NAME: "Kim", EMAIL: "kim@example.com", DATE: instant };
  const git = ["AUTHOR", "COMMITTER"].flatMap((role) =>
    Object.entries(person).map(([key, value]) => [`GIT_${role}_${key}`, value]),
  );
  const env = {
    PATH: `${join(scratch, "bin")}:${dirname(process.execPath)}:${process.env.PATH}`,
    HOME: dirname(cwd),
    TMPDIR: join(place, "tmp"),
    LANG: "C.UTF-8",
    TERM: "dumb",
    TZ: "UTC",
    SETUPS: setups,
    SESSIONS: join(scratch, "sessions"),
    BILLED: join(scratch, "billed"),
    PLIMSOLL_ROOT: root,
    ...Object.fromEntries(git),
    ...{ GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "init.defaultBranch", GIT_CONFIG_VALUE_0: "main" },
  };
  // A group of its own: what a page leaves running ends with it.
  const child = spawn("sh", [join(place, "page.sh")], { cwd, env, stdio: "ignore", detached: true });
  const timer = setTimeout(() => endGroup(child.pid), waitMs);
  try {
    await once(child, "exit");
  } finally {
    clearTimeout(timer);
    endGroup(child.pid);
  }
}

function endGroup(leader: number | undefined): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, "SIGKILL");
  } catch {
    // Nothing of the group runs any more.
  }
}

function problemOf(step: Step, { source, index, place }: { source: Source; index: number; place: string }): Problem[] {
  if (step.kind === "program" && !step.runs) return [];
  const where = `${source.name}:${step.line}`;
  const status = Number(readFileSync(join(place, `${index}.status`), "utf8"));
  const got = printedBy(index, place);
  if (step.kind !== "command" && status !== 0) {
    return [{ text: `${where}: the ${step.kind} failed with exit code ${status}\n${got.join("\n")}` }];
  }
  if (step.expected === undefined || isShown(step.expected, got)) return [];
  const name = step.kind === "command" ? `$ ${step.text}` : `the ${step.kind}`;
  const text = `${where}: ${name}\n${differenceOf(step.expected, got)}`;
  return [{ text, output: { line: step.outputLine ?? 0, shown: step.expected, got } }];
}

function printedBy(index: number, place: string): string[] {
  const file = join(place, `${index}.out`);
  const printed = existsSync(file) ? linesOf(readFileSync(file, "utf8").replaceAll(place, "")) : [];
  return printed.slice(printed.lastIndexOf(seam) + 1);
}

/** Whether the page shows this output. A line `…` stands for any number of lines, also none. */
export function isShown(expected: readonly string[], output: readonly string[]): boolean {
  const shown = linesOf(expected.join("\n")).map(comparable);
  const got = output.map(comparable);
  const match = (at: number, from: number): boolean => {
    if (at === shown.length) return from === got.length;
    if (shown[at] !== "…") return shown[at] === got[from] && match(at + 1, from + 1);
    for (let rest = from; rest <= got.length; rest++) if (match(at + 1, rest)) return true;
    return false;
  };
  return match(0, 0);
}

function comparable(line: string): string {
  return varying.reduce((text, [, pattern, sign]) => text.replace(pattern, sign), line);
}

/** Blanks at the end of a line or of the output are not compared. */
function linesOf(text: string): string[] {
  const lines = text.split(/\r?\n/).map((line) => line.trimEnd());
  while (lines.at(-1) === "") lines.pop();
  return lines;
}

function differenceOf(expected: readonly string[], output: readonly string[]): string {
  const [shown, got] = [linesOf(expected.join("\n")), [...output]].map((lines) => `${lines.join("\n")}\n`);
  const patch = createTwoFilesPatch("shown on the page", "printed", shown ?? "", got ?? "", "", "", {
    context: 3,
  });
  return patch.replace(/^=+\n/, "");
}
