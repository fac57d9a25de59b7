import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as immediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { markedBlock } from "../../src/rules/files/marked-block.ts";
import { caseCount } from "../case-count.ts";
import { createSandbox, type Run, runProcess, type Sandbox } from "./run-plimsoll.ts";

const deep = process.env.PLIMSOLL_DEEP === "1";
const kills = caseCount({ few: 2, deep: 60, long: 200 });
const changesEach = deep ? 40 : 4;
const changer = fileURLToPath(new URL("./file-changer.mjs", import.meta.url));
const eight = Array.from({ length: 8 });

let sandbox: Sandbox;
beforeAll(() => {
  const built = fileURLToPath(new URL("../../dist/host/files/change-file.js", import.meta.url));
  if (!existsSync(built)) throw new Error("These tests run the built package: npm run build");
});
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

/** Bytes that are no UTF-8, mixed line ends, and no final one. */
const mine = Buffer.from("# Mine \xff\xfe\r\n\n```\nopen \xe9\n<!-- \r\nlast", "latin1").toString("latin1");
const words = (job: string, count: number | string = "Infinity") => [
  process.execPath,
  changer,
  sandbox.cwd,
  "notes/CLAUDE.md",
  job,
  String(count),
];
const run = (job: string, count?: number): Promise<Run> =>
  runProcess(words(job, count), { cwd: sandbox.cwd, env: sandbox.env });
const readTarget = () => readFileSync(join(sandbox.cwd, "notes/CLAUDE.md"), "latin1");
const locks = () => readdirSync(join(sandbox.home, ".local/state/plimsoll/locks"));

/** The body of the block, after making sure that the file is whole and the person's bytes are where they were. */
function wholeBody(): string | undefined {
  const file = readTarget();
  expect(file.startsWith(mine)).toBe(true);
  if (file === mine) return undefined;
  const search = markedBlock.find(file, "context");
  if (search.kind !== "block") throw new Error(`the block is ${search.kind}`);
  const { start, end, body, edited } = search.block;
  expect({ edited, before: file.slice(0, start), after: file.slice(end) }).toEqual({
    edited: false,
    before: `${mine}\n\n`,
    after: "",
  });
  return body;
}

/** Cheap, to look as often as possible: a file that is written in place is empty or cut off at some moment. */
function looksWhole(file: string): boolean {
  return file === mine || (file.startsWith(mine) && file.endsWith("\n<!-- plimsoll:end:context -->"));
}

/** Waits for a temporary file, so that the kill falls into a write. */
async function writeBegins(): Promise<void> {
  const until = performance.now() + 2_000;
  while (readdirSync(join(sandbox.cwd, "notes")).length === 1 && performance.now() < until) await immediate();
}

/** Lets a process rewrite the file, looks at the file all the while, and kills it without a warning. */
async function rewriteAndKill(round: number): Promise<{ acknowledged: number; body: string | undefined }> {
  const [command = "", ...args] = words("rewrite");
  const child = spawn(command, args, { env: sandbox.env, stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  let output = "";
  const first = new Promise<void>((resolve) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      resolve();
    });
  });
  try {
    // Spread over start, first write, and the middle of later ones.
    if (round % 5 !== 0) await Promise.race([first, exited]);
    const until = performance.now() + ((round * 13) % 97) + Math.random() * 10;
    while (performance.now() < until) {
      for (let look = 0; look < 5; look += 1) expect(looksWhole(readTarget())).toBe(true);
      await immediate();
    }
    if (round % 2 === 0) await writeBegins();
  } finally {
    child.kill("SIGKILL");
    await exited;
  }
  const lines = output.split("\n").slice(0, -1);
  return { acknowledged: Number(lines.at(-1) ?? -1), body: wholeBody() };
}

test(`a writer killed at any moment leaves a whole file and nothing in the way (${kills} kills)`, {
  tags: ["deep"],
  timeout: 60_000 + kills * 2_000,
}, async () => {
  sandbox.write("notes/CLAUDE.md", Buffer.from(mine, "latin1"));
  let leftBehind = 0;
  // A kill that never met a write would prove nothing, so more follow until one did.
  for (let round = 0; round < kills || (leftBehind === 0 && round < kills + 20); round += 1) {
    const { acknowledged, body } = await rewriteAndKill(round);
    // What was acknowledged is there, or the version that was on its way when the kill came.
    const version = Number(body?.split("\n", 1)[0] ?? -1);
    if (acknowledged >= 0) expect([acknowledged, acknowledged + 1]).toContain(version);
    leftBehind += readdirSync(join(sandbox.cwd, "notes")).length - 1;
    if (round % 4 !== 3) continue;
    const started = performance.now();
    expect(await run("put")).toMatchObject({ code: 0, stderr: "" });
    expect(performance.now() - started).toBeLessThan(5_000);
    expect(wholeBody()).toBe("Same.\n");
    expect(readdirSync(join(sandbox.cwd, "notes"))).toEqual(["CLAUDE.md"]);
    expect(locks()).toEqual([]);
  }
  expect(leftBehind).toBeGreaterThan(0);
});

test("eight processes at once that put the same block write it once", { tags: ["deep"], timeout: 60_000 }, async () => {
  sandbox.write("notes/CLAUDE.md", Buffer.from(mine, "latin1"));
  const runs = await Promise.all(eight.map(() => run("put")));
  expect(runs.map(({ code, stderr }) => ({ code, stderr }))).toEqual(eight.map(() => ({ code: 0, stderr: "" })));
  expect(runs.map(({ stdout }) => stdout).sort()).toEqual([...eight.slice(1).map(() => "false\n"), "true\n"]);
  expect(wholeBody()).toBe("Same.\n");
  expect(locks()).toEqual([]);
});

test("eight processes at once that each build on what is there lose no change", {
  timeout: 90_000,
}, async () => {
  const runs = await Promise.all(eight.map(() => run("append", changesEach)));
  expect(runs.map(({ code, stderr }) => ({ code, stderr }))).toEqual(eight.map(() => ({ code: 0, stderr: "" })));
  const search = markedBlock.find(readTarget(), "context");
  const lines = search.kind === "block" ? search.block.body.trimEnd().split("\n") : [];
  expect(new Set(lines).size).toBe(8 * changesEach);
  expect(lines).toHaveLength(8 * changesEach);
  expect(readdirSync(join(sandbox.cwd, "notes"))).toEqual(["CLAUDE.md"]);
  expect(locks()).toEqual([]);
});
