import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ChosenAgent } from "./choose-agent.ts";
import { generateNebula } from "./generate-nebula.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "plimsoll-generated-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const good = `=== nebula.toml ===
[nebula]
name = "search"
=== page.md ===
+++
id = "page"
title = "The page"
check = ["npm test"]
+++

Make the page.
`;
const bad = good.replace('title = "The page"\n', "").replace("npm test", "rm -rf .");

/** Answers with one text after the other, and keeps its prompts and command lines. */
function generate(...answers: readonly string[]) {
  for (const [index, answer] of answers.entries()) writeFileSync(join(folder, `answer-${index + 1}`), answer);
  const agent = {
    line: () =>
      `cd '${folder}'; n=$(ls | grep -c ^prompt-); n=$((n + 1)); cat >prompt-$n; pwd >>started; cat answer-$n`,
    model: () => undefined,
  } as unknown as ChosenAgent;
  return generateNebula({
    wish: "Add a search page",
    context: "## Project\n\nSample",
    name: "search",
    agent,
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder },
    timeoutMs: 20_000,
    signal: new AbortController().signal,
  });
}

test("a plan with mistakes goes back once with all of them, and nothing of it runs", async () => {
  const { files, problems, tries } = await generate(bad, `Here it is.\n\n${good}`);
  expect([problems, tries, Object.keys(files)]).toEqual([[], 2, ["nebula.toml", "page.md"]]);
  expect(files["page.md"]).toMatch(/^\+\+\+\nid = "page"[\s\S]*Make the page\.\n$/);
  const prompts = [1, 2].map((n) => readFileSync(join(folder, `prompt-${n}`), "utf8"));
  expect(prompts[0]).toMatch(/^## Project[\s\S]*Add a search page[\s\S]*=== nebula\.toml ===/);
  expect(prompts[1]).toContain('- page.md:2: "title" is missing');
  expect(prompts[1]).toContain("rm -rf .");
  expect(readdirSync(folder).filter((name) => name.startsWith("plan"))).toEqual([]);
});

test("a plan that keeps its mistakes comes back with them, after two tries", async () => {
  const { problems, tries } = await generate(bad, bad, good);
  expect([problems.map(({ rule }) => rule), tries]).toEqual([["missing-key"], 2]);
  expect(existsSync(join(folder, "prompt-3"))).toBe(false);
});

test("an answer without files is a mistake, too", async () => {
  expect((await generate("No idea.", "No idea.")).problems[0]?.message).toContain("=== nebula.toml ===");
});

test("an agent that fails ends it with its reason", async () => {
  await expect(generate()).rejects.toThrow("exit code 1");
});
