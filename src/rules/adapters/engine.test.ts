import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeRepository } from "../../../test/make-repository.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { readProjectTree } from "../files/project-tree.ts";
import { mergeLayers } from "../packs/index.ts";
import type { Adapter } from "./adapter.ts";
import { injectFiles } from "./engine.ts";
import { uninstallFiles } from "./left-overs.ts";
import { injectionStatus, type StatusOptions } from "./status.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "plimsoll-engine-"));
  makeRepository(root);
});
afterEach(() => rmSync(root, { recursive: true }));

function adapter(id: string, path: string, more: Partial<Adapter> = {}): Adapter {
  return {
    ...{ id, name: id, type: "file-inject", format: "markdown", instructions: "" },
    targets: [{ scope: "project", path, mode: "replace-section", section: "context" }],
    ...{ detect: [], limits: [], reads: [], imports: false, mcpConfigs: [] },
    ...more,
  };
}

type TestOptions = StatusOptions & { readonly dryRun: boolean; readonly force: boolean };

async function options(adapters: readonly Adapter[], more: Partial<TestOptions> = {}): Promise<TestOptions> {
  const empty = { tags: [], overlaps: [], detect: [], profiles: [], locales: {}, versions: {}, changelog: [] };
  const lists = { samples: [], knownErrors: [], learning: [], globs: [], optional: false, nested: false, skills: [] };
  const source = {
    ...{ id: "base", name: "Base", description: "", weight: 0, base: true, additive: false },
    ...{ additivePosition: "after" as const, directory: "", texts: { "context.md": "## Base\n\nText.\n" } },
    ...empty,
    ...lists,
  };
  const { packs } = mergeLayers([{ layer: "embedded", sources: [source] }], { language: "en" });
  return {
    ...{ adapters, packs, content: { title: "T" }, verbosityOf: {} },
    counter: await createCounter("bytes/4"),
    places: { scope: "project", root, home: root },
    ...{ known: adapters, everyAdapter: adapters, standing: [], ids: adapters.map(({ id }) => id) },
    ...{ ownFiles: [], tree: await readProjectTree(root, {}) },
    env: { HOME: root, XDG_STATE_HOME: join(root, "state") },
    ...{ defaultOnOverflow: "drop", onDrop: "fail", force: false, dryRun: false },
    ...more,
  };
}

const at = (path: string) => join(root, path);
const put = (path: string, text: string) => {
  mkdirSync(dirname(at(path)), { recursive: true });
  writeFileSync(at(path), text);
};

test("a link to a file that does not exist yet shares that file's block", async () => {
  symlinkSync("AGENTS.md", at("CLAUDE.md"));
  const given = await options([
    adapter("claude", "CLAUDE.md", { verbosity: "minimal" }),
    adapter("agents", "AGENTS.md"),
  ]);
  expect((await injectFiles(given)).results).toHaveLength(1);
  expect((await injectionStatus(given)).map(({ state }) => state)).toEqual(["current"]);
});

test("removes a block from before an import, and keeps one that a person edited", async () => {
  const claude = adapter("claude", "CLAUDE.md", { imports: true });
  const given = await options([claude, adapter("agents", "AGENTS.md")]);
  await injectFiles(given);
  put("CLAUDE.md", `@AGENTS.md\n\n${readFileSync(at("CLAUDE.md"), "utf8")}`);
  expect((await injectionStatus(given)).map(({ state }) => state)).toEqual(["current", "stale"]);
  await injectFiles(given);
  expect(readFileSync(at("CLAUDE.md"), "utf8").trim()).toBe("@AGENTS.md");
  expect((await injectionStatus(given)).map(({ state }) => state)).toEqual(["current", "current"]);
});

test("writes nothing into .git", async () => {
  put(".git/config", "[core]\n");
  const {
    results: [result],
  } = await injectFiles(await options([adapter("bad", ".git/config")]));
  expect(result).toMatchObject({ status: "failed", problem: { code: "refused_target" } });
  expect(readFileSync(at(".git/config"), "utf8")).toBe("[core]\n");
});

test("uninstalling removes the folders that were made for a file, and no others", async () => {
  put(".cursor/mine.md", "mine");
  const adapters = [adapter("a", ".cursor/rules/deep/p.md"), adapter("b", ".tool/p.md")];
  const given = await options(adapters);
  await injectFiles(given);
  await uninstallFiles(given);
  expect([".cursor/rules", ".tool", ".cursor/mine.md"].map((path) => existsSync(at(path)))).toEqual([
    false,
    false,
    true,
  ]);
});

test("with force, overwrites an edit and keeps it beside the file, also when uninstalling", async () => {
  const given = await options([adapter("a", "A.md")], { force: true });
  await injectFiles(given);
  const edited = readFileSync(at("A.md"), "utf8").replace("Text.", "Mine.");
  put("A.md", edited);
  await injectFiles(given);
  expect(readFileSync(at("A.md.bak"), "utf8")).toBe(edited);
  put("A.md", edited.replace("Mine.", "Other."));
  await uninstallFiles(given);
  expect(existsSync(at("A.md"))).toBe(false);
  expect(readFileSync(at("A.md.bak.1"), "utf8")).toContain("Other.");
});

const chainOf400 = [
  { value: 400, unit: "bytes", kind: "hard", scope: "chain", evidence: "source", checked: "2026-11-15" },
] as const;

test("the chain above a file counts toward its limit, and so does the largest chain below", async () => {
  const statusWith = async (path: string, bytes: number) => {
    put(path, "x".repeat(bytes));
    const given = await options([adapter("agents", "sub/AGENTS.md", { limits: chainOf400 })]);
    const {
      results: [result],
    } = await injectFiles({ ...given, dryRun: true });
    rmSync(at(path));
    return result!.status;
  };
  expect(await statusWith("sub/deep/OTHER.md", 1_000)).toBe("ok");
  expect(await statusWith("beside/AGENTS.md", 1_000)).toBe("ok");
  expect(await statusWith("AGENTS.md", 300)).toBe("over budget");
  expect(await statusWith("sub/deep/er/AGENTS.md", 300)).toBe("over budget");
});

test("an importing file keeps its block until the imported file has one", async () => {
  const claude = adapter("claude", "CLAUDE.md", { imports: true });
  await injectFiles(await options([claude]));
  put("CLAUDE.md", `@AGENTS.md\n\n${readFileSync(at("CLAUDE.md"), "utf8")}`);
  mkdirSync(at("AGENTS.md"));
  const { results } = await injectFiles(await options([claude, adapter("agents", "AGENTS.md")]));
  expect(results.map(({ status }) => status)).toEqual(["failed", "failed"]);
  expect(readFileSync(at("CLAUDE.md"), "utf8")).toContain("Text.");
});

test("the order in which tools are named does not matter", async () => {
  mkdirSync(at("sub"));
  put("AGENTS.md", "x".repeat(300));
  symlinkSync("AGENTS.md", at("sub/CLAUDE.md"));
  const both = [adapter("claude", "sub/CLAUDE.md"), adapter("agents", "sub/AGENTS.md", { limits: chainOf400 })];
  const {
    results: [first],
  } = await injectFiles(await options(both, { dryRun: true }));
  const {
    results: [second],
  } = await injectFiles(await options([...both].reverse(), { dryRun: true }));
  expect(first).toEqual(second);
  expect(first!.status).toBe("over budget");
});

test("with force, copies nothing if nothing of a person is overwritten", async () => {
  const whole = adapter("a", "A.md");
  const targets = [{ ...whole.targets[0]!, mode: "replace-file" as const }];
  put("A.md", "mine");
  const given = await options([{ ...whole, targets }], { force: true });
  await uninstallFiles(given);
  expect(existsSync(at("A.md.bak"))).toBe(false);
  await injectFiles(given);
  expect(readFileSync(at("A.md.bak"), "utf8")).toBe("mine");
});
