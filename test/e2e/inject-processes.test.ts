import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { markedBlock, readOwnership } from "../../src/rules/files/marked-block.ts";
import { caseCount } from "../case-count.ts";
import { createProject, type InjectProject } from "./inject-project.ts";
import { mainFile } from "./run-plimsoll.ts";

const kills = caseCount({ few: 3, deep: 60, long: 200 });

/** What people have in the files that the tools share with them: any bytes, any line ends, and a file of each kind. */
const sections: Record<string, string> = {
  "AGENTS.md": "# Mine\n",
  "CLAUDE.md": "# Mine\r\n\r\nText.\r\n",
  "GEMINI.md": "\xef\xbb\xbf# Mine",
  "QWEN.md": "caf\xe9 \xff\n",
  "replit.md": "No final line break",
  ".github/copilot-instructions.md": "",
};
const owned = [".cursor/rules/plimsoll.mdc", ".kiro/steering/plimsoll.md", ".continue/rules/plimsoll.md"];
const files = [...Object.keys(sections), ...owned, ".augment/rules/plimsoll.md"];
const tools = "agents-md,claude-code,gemini-cli,qwen-code,replit,github-copilot,cursor,kiro,continue,augment";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
  project.keepOwnFiles();
  for (const [path, bytes] of Object.entries(sections)) project.put(path, bytes);
});
afterEach(() => project.remove());

/** Every other run has another text, so that each one writes every file. */
const argsOf = (round: number) => [
  ...["inject", "--tool", tools, "-q", "--verbosity"],
  round % 2 === 0 ? "minimal" : "full",
];

/** Throws unless the file is as the person left it or holds one whole block of ours behind that. */
function expectWhole(path: string): void {
  if (!existsSync(join(project.cwd, path))) return;
  const file = project.read(path);
  const own = sections[path];
  if (own === undefined) {
    expect(readOwnership(file), path).toEqual({ kind: "ours", edited: false });
    return;
  }
  expect(file.startsWith(own), path).toBe(true);
  if (file === own) return;
  const found = markedBlock.find(file, "context");
  expect(found, path).toMatchObject({ kind: "block", block: { edited: false } });
  if (found.kind === "block") expect(file.slice(found.block.end).trim(), path).toBe("");
}

const identity = (path: string) => statSync(join(project.cwd, path), { throwIfNoEntry: false })?.ino;

/** Kills a run after a while, or in the moment when a certain file has been replaced. Says which files it had written. */
async function injectAndKill(round: number, afterMs: number): Promise<number> {
  const before = files.map(identity);
  const child = spawn(process.execPath, [mainFile, ...argsOf(round)], {
    cwd: project.cwd,
    env: project.env,
    stdio: "ignore",
  });
  const exited = once(child, "exit");
  if (round % 3 === 0) await Promise.race([sleep(afterMs), exited]);
  else {
    const index = round % files.length;
    while (child.exitCode === null && identity(files[index]!) === before[index]) await sleep(1);
  }
  child.kill("SIGKILL");
  await exited;
  return files.filter((path, index) => identity(path) !== before[index]).length;
}

const leftovers = () =>
  readdirSync(project.cwd, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".tmp"));
const locks = () => readdirSync(join(project.home, ".local/state/plimsoll/locks"));

test(`a run killed at any moment tears no file and loses no byte; the next one finishes (${kills} kills)`, {
  tags: ["deep"],
  timeout: 60_000 + kills * 3_000,
}, async () => {
  const started = performance.now();
  expect(await project.run(argsOf(1))).toMatchObject({ code: 0, stderr: "" });
  const wholeRun = performance.now() - started;
  let interrupted = 0;
  for (let round = 0; round < kills; round++) {
    const written = await injectAndKill(round, wholeRun * (0.3 + 0.7 * Math.random()));
    if (written > 0 && written < files.length) interrupted++;
    for (const path of files) expectWhole(path);
    if (round % 5 !== 4) continue;
    expect(await project.run(argsOf(round))).toMatchObject({ code: 0, stderr: "" });
    for (const path of files) expectWhole(path);
    expect(leftovers()).toEqual([]);
    expect(await project.call([...argsOf(round), "--check"])).toMatchObject({ code: 0 });
  }
  // Kills that never fell between two files would prove nothing.
  expect(interrupted).toBeGreaterThan(kills / 5);
  expect(await project.call(["inject", "--uninstall", "-q"])).toMatchObject({ code: 0, stderr: "" });
  for (const [path, bytes] of Object.entries(sections)) expect(project.read(path), path).toBe(bytes);
  expect(locks()).toEqual([]);
});

test("eight runs at once end in what one run writes, and each file is written once", {
  tags: ["deep"],
  timeout: 60_000,
}, async () => {
  const alone = createProject();
  try {
    alone.keepOwnFiles();
    for (const [path, bytes] of Object.entries(sections)) alone.put(path, bytes);
    await alone.call(argsOf(1));
    const runs = await Promise.all(Array.from({ length: 8 }, () => project.run([...argsOf(1), "--json"])));
    expect(runs.map(({ code, stderr }) => `${code}${stderr}`)).toEqual(runs.map(() => "0"));
    const rows: { readonly written: boolean }[] = runs.flatMap(({ stdout }) => JSON.parse(stdout));
    expect(rows.filter(({ written }) => written)).toHaveLength(files.length);
    expect(project.tree()).toEqual(alone.tree());
    expect(locks()).toEqual([]);
  } finally {
    alone.remove();
  }
});

test("eight runs with different texts at once leave one of the two texts in each file", {
  tags: ["deep"],
  timeout: 60_000,
}, async () => {
  const runs = await Promise.all(Array.from({ length: 8 }, (_, index) => project.run(argsOf(index))));
  expect(runs.map(({ code, stderr }) => `${code}${stderr}`)).toEqual(runs.map(() => "0"));
  for (const path of files) expectWhole(path);
  expect(leftovers()).toEqual([]);
  expect(await project.run(argsOf(0))).toMatchObject({ code: 0, stderr: "" });
  expect(await project.call([...argsOf(0), "--check"])).toMatchObject({ code: 0 });
});
