import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { measureTask, textTasks } from "../bench/tools/measure-text.ts";
import { measurementOf, timeInTurns } from "../bench/tools/measurement.ts";
import { pageThrough } from "../bench/tools/page-through.ts";
import { findRipgrep, runPlain } from "../bench/tools/plain-command.ts";
import { goalsOf, renderReport } from "../bench/tools/render-report.ts";
import { createRepository, needlesIn } from "../bench/tools/repository.ts";
import type { ServerClient } from "../bench/tools/server-client.ts";
import { createSourceRepository } from "../bench/tools/source-repository.ts";
import { createCounter } from "../src/core/tokens/index.ts";
import { createSession } from "../src/results/session/index.ts";
import { createTools } from "../src/results/tools/index.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "bench-tools-"));
  folders.push(folder);
  return folder;
}

const fileCount = process.env.PLIMSOLL_DEEP === "1" ? 1_000 : 200;

it("the repository has the files and the needles that it is said to have, and ignores the rest", {
  tags: ["deep"],
}, async () => {
  const { root, files } = await createRepository(join(temporaryFolder(), "repository"), fileCount);
  expect(files).toBe(fileCount + 1);
  const listed = await runPlain({
    program: "git",
    args: ["ls-files", "--cached", "--others", "--exclude-standard"],
    cwd: root,
  });
  expect(listed.lines).toBe(files);
  const status = spawnSync("git", ["status", "--porcelain"], { cwd: root, encoding: "utf8" });
  expect(status.stdout).toBe("");
  for (const { word, files: holding } of Object.values(needlesIn(fileCount))) {
    const found = spawnSync("git", ["grep", "-c", word], { cwd: root, encoding: "utf8" });
    expect(found.stdout.trim().split("\n")).toHaveLength(holding);
  }
});

it("pages in text form have every fact of the plain commands, and cost at most 5 % more", {
  timeout: 120_000,
  // Everyday runs compare the text forms in src/results/tools/text-forms.test.ts.
  tags: ["deep"],
}, async () => {
  const modules = fileURLToPath(new URL("../node_modules", import.meta.url));
  const repository = createSourceRepository(join(temporaryFolder(), "sources"), modules, 120);
  const counter = await createCounter("estimate:claude-5");
  const tools = createTools({ root: repository.root });
  const session = await createSession({ counter, tools, now: Date.now, format: "text", budget: { total: 1_000_000 } });
  const call = (tool: string, args: Record<string, unknown>) =>
    session.call(tool as (typeof tools)[number]["name"], args);
  const tasks = textTasks(repository, await findRipgrep());
  expect(tasks.length).toBeGreaterThan(7);
  for (const task of tasks) {
    const { name, tokens, plainTokens, missing, added } = await measureTask(task, counter, call);
    expect({ name, missing, added, isTooLarge: tokens > plainTokens * 1.05 }).toEqual({
      ...{ name, missing: 0, added: 0, isTooLarge: false },
    });
  }
});

it("a program that fails is no measurement", async () => {
  const failing = { program: process.execPath, args: ["-e", "process.exit(3)"], cwd: tmpdir() };
  await expect(runPlain(failing)).rejects.toThrow("ended with 3");
});

it("rounds are interleaved, and the first one is not counted", async () => {
  const order: string[] = [];
  const thing = (name: string) => async (): Promise<number> => order.push(name);
  expect(
    await timeInTurns(
      2,
      ["a", "b"].map((name) => thing(name)),
    ),
  ).toEqual([
    [3, 5],
    [4, 6],
  ]);
  expect(order.join("")).toBe("ababab");
  expect(measurementOf("b", [10, 30, 50], { plain: [10, 10, 100] })).toEqual({
    name: "b",
    milliseconds: 30,
    ratio: 1,
    addedMs: 0,
  });
});

describe("paging through", () => {
  /** Answers with these pages, one after the other. */
  function clientOf(pages: readonly (readonly string[])[]): ServerClient {
    let next = 0;
    return {
      call: async (name, args) => {
        const token = next === 0 ? undefined : `offset:${next}`;
        expect([name, args]).toEqual(token === undefined ? ["list", { a: 1 }] : ["next_page", { token }]);
        const files = pages[next++]!.map((path) => ({ path }));
        const continuation = next < pages.length ? { continuation_token: `offset:${next}` } : {};
        return { text: "12345", data: { files, ...continuation } };
      },
      context: async () => ({ definitions: [], instructions: "" }),
      peakMegabytes: () => undefined,
      close: async () => {},
    };
  }
  const question = {
    tool: "list",
    args: { a: 1 },
    itemsName: "files",
    keyOf: ({ path }: Readonly<Record<string, unknown>>) => String(path),
  };

  it("asks until there is no next page", async () => {
    const paged = await pageThrough(clientOf([["a", "b"], ["c"], []]), question);
    expect(paged).toMatchObject({ pages: 3, items: 3, characters: 15 });
  });

  it("notices an item that comes twice, and a result of another kind", async () => {
    await expect(pageThrough(clientOf([["a"], ["a"]]), question)).rejects.toThrow("1 items came twice");
    await expect(pageThrough(clientOf([["a"]]), { ...question, itemsName: "lines" })).rejects.toThrow(
      "list gave no lines",
    );
  });
});

describe("the report", () => {
  const rows = [
    { name: "project_files, first page", milliseconds: 200, ratio: 1.5, pages: 1, peakMegabytes: 100 },
    { name: "project_files, all pages", milliseconds: 60_000, ratio: 400, pages: 600, peakMegabytes: 200 },
    { name: "search_content, 20 matches, first page", milliseconds: 900, ratio: 2.5, pages: 1 },
    { name: "echo, wrapped", milliseconds: 4.5, ratio: 3, addedMs: 3 },
  ];

  it("holds what was measured against the goals, and leaves out what was not", () => {
    expect(goalsOf(rows).map(({ measured, met }) => [measured, met])).toEqual([
      [200, true],
      [2.5, false],
      [2, false],
    ]);
    expect(goalsOf([])).toEqual([]);
  });

  it("is one table", () => {
    const facts = {
      node: "20.0.0",
      rounds: 3,
      repository: { files: 100_001, bytes: 98e6 },
      notes: ["a note"],
    };
    const lines = renderReport({ ...facts, measurements: rows, goals: goalsOf(rows) }).split("\n");
    expect(lines[0]).toContain("A repository of 100,001 files of 98 MB");
    expect(lines[2]).toMatch(/^ +ms +× plain +\+ ms +pages +ms a page +items +peak MB$/);
    expect(lines[4]).toMatch(/^project_files, all pages +60,000 +400\.00 +600 +100 +200$/);
    expect(lines[6]).toMatch(/^echo, wrapped +4\.50 +3\.00 +3\.00$/);
    expect(lines.slice(-2)).toEqual(["a note", ""]);
  });
});
