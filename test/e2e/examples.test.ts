/** The examples run as their README says, with the built package and without a network. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const attemptLine = /^(with.*): (\d+) calls, largest (\d+) of (\d+) tokens\. (.*)$/;

async function run(example: string, program = "agent.mjs"): Promise<string[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [`examples/${example}/${program}`], {
    cwd: root,
  });
  return stdout.trimEnd().split("\n");
}

describe.each(["ai-sdk", "anthropic", "openai"])("the example %s", (example) => {
  test("fails without a budget and comes to its end with one", async () => {
    const lines = await run(example);
    const attempts = lines.flatMap((line) => {
      const [, name, calls, largest, window, outcome] = attemptLine.exec(line) ?? [];
      return name === undefined ? [] : [{ name, calls, isWithin: Number(largest) <= Number(window), outcome }];
    });
    const [first, ...rest] = attempts;
    expect(first?.name).toBe("without a budget");
    expect(first?.outcome).toMatch(/too long|exceed/);
    expect(rest.length).toBeGreaterThan(0);
    for (const attempt of rest) {
      expect(attempt).toMatchObject({ calls: "41", isWithin: true, outcome: "The bug is in src/file-7.ts." });
    }
    expect(lines.filter((line) => line.startsWith("  trimmed: ")).length).toBeGreaterThanOrEqual(rest.length);
  });
});

test("a session's tools fit the loops of three SDKs, and their types", async () => {
  for (const sdk of ["anthropic", "openai", "ai-sdk"]) {
    const [line] = await run("session", `${sdk}-loop.mjs`);
    expect(line).toMatch(/^Read long\.ts in 4 pages\. Budget: \d+k of 20k left/);
  }
  const options = "--ignoreConfig --noEmit --allowJs --checkJs --strict --module nodenext --target es2023 --types node";
  const files = ["anthropic", "openai", "ai-sdk"].map((sdk) => `examples/session/${sdk}-loop.mjs`);
  const compiler = fileURLToPath(new URL("../../node_modules/typescript/bin/tsc", import.meta.url));
  const args = [compiler, ...options.split(" "), "--skipLibCheck", ...files];
  await expect(promisify(execFile)(process.execPath, args, { cwd: root })).resolves.toMatchObject({ stdout: "" });
});

test("the example of a summary uses what its small model says, and the digest while that model is down", async () => {
  const lines = await run("anthropic", "summary.mjs");
  const summaries = lines.flatMap((line) => /^ {2}trimmed to \d+ tokens, summary (.*)$/.exec(line)?.[1] ?? []);
  expect(summaries).toEqual(["used", "used", "failed", "used", "used"]);
  expect(lines.at(-1)).toMatch(/^The agent has read \d+ files and has found no bug yet\.\]$/);
});
