/** In any repository with instruction files further down: what `--check` says of limits is what `audit` says, and inject cuts nothing that
 *  was whole before. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createCounter } from "../../src/core/tokens/index.ts";
import type { Adapter } from "../../src/rules/adapters/adapter.ts";
import { adapterFileSchema } from "../../src/rules/adapters/adapter-schema.ts";
import { audit } from "../../src/rules/audit/audit.ts";
import { loadContent } from "../../src/rules/content/load-content.ts";
import { chooseAdapters, injectFiles, injectionStatus, isEnforced, readProjectTree } from "../../src/rules/index.ts";
import { createPackSource, mergeLayers, orderPacks } from "../../src/rules/packs/index.ts";
import { caseCount } from "../case-count.ts";
import { makeRepository } from "../make-repository.ts";

const numRuns = caseCount({ few: 3, deep: 100, long: 300 });
const content = fileURLToPath(new URL("../../content", import.meta.url));
const { adapters: known } = await loadContent<Adapter>({
  layers: [{ layer: "embedded", directory: content, strictness: "error", required: true }],
  loadAdapterSchema: async () => adapterFileSchema,
});
const counter = await createCounter("bytes/4");
const sources = ["a", "b", "c"].map((id) =>
  createPackSource({
    pack: { id, base: id === "a" },
    texts: { "context.md": `## ${id}\n\n${"Line.\n".repeat(700)}` },
    directory: id,
  }),
);
const packs = orderPacks(mergeLayers([{ layer: "embedded", sources }], { language: "en" }).packs);

const folders = ["", "a", "a/b", "a/b/c", "d", "d/node_modules/p"];
const names = ["AGENTS.md", "AGENTS.md", "AGENTS.override.md", "CLAUDE.md", ".devin/rules/team.md"];
/** Around the limits: 32,768 bytes in a chain, 12,000 characters in a rule. */
const size = fc.constantFrom(0, 90, 3_000, 9_000, 11_990, 12_010, 20_000, 32_700, 32_768, 32_769);
const entry = fc.record({
  folder: fc.constantFrom(...folders),
  name: fc.constantFrom(...names),
  bytes: size,
  kind: fc.constantFrom("ascii", "ascii", "ascii", "wide", "import"),
});
type Entry = typeof entry extends fc.Arbitrary<infer Value> ? Value : never;

function textOf({ bytes, kind }: Entry): string {
  if (kind === "import") return "@AGENTS.md\n";
  return kind === "wide" ? "文".repeat(Math.floor(bytes / 3)) : "x".repeat(bytes);
}

/** Links to the root's AGENTS.md in place of a file. */
const links = fc.subarray(["a/AGENTS.md", "d/AGENTS.md"], { maxLength: 1 });
const tools = fc.subarray(["agents-md", "claude-code", "codex-cli", "cursor", "devin-desktop"], {
  minLength: 1,
});

interface Repository {
  readonly base: string;
  readonly root: string;
}

function writeRepository(entries: readonly Entry[], linked: readonly string[]): Repository {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-chains-")));
  const root = join(base, "project");
  makeRepository(root);
  for (const folder of [...folders, "../home"]) mkdirSync(join(root, folder), { recursive: true });
  for (const each of entries) {
    const path = join(root, each.folder, each.name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, textOf(each));
  }
  for (const path of linked) {
    rmSync(join(root, path), { force: true });
    symlinkSync(relative(dirname(path), "AGENTS.md"), join(root, path));
  }
  return { base, root };
}

/** The tools that lose something, in any folder, by what `audit` says. */
async function overTheLimit({ base, root }: Repository, ids: readonly string[]): Promise<string[]> {
  const over = new Set<string>();
  for (const folder of folders.filter((each) => !each.includes("node_modules"))) {
    const report = await audit({
      ...{ adapters: known, directory: join(root, folder), home: join(base, "home") },
      ...{ cwd: root, counter, all: true },
    });
    for (const { id, limits } of report.tools)
      if (limits.some((limit) => limit.exceeded && isEnforced(limit))) over.add(id);
  }
  const meant = new Set(ids.flatMap((id) => (id === "agents-md" ? [id, "codex-cli"] : [id])));
  return [...over].filter((id) => meant.has(id)).sort();
}

async function optionsFor({ base, root }: Repository, ids: readonly string[]) {
  const places = { scope: "project" as const, root, home: join(base, "home") };
  const env = { HOME: places.home };
  const adapters = await chooseAdapters(known, { tools: ids, all: false, places, env });
  return {
    ...{ adapters, known, everyAdapter: known, standing: [], ownFiles: [], places, env, packs, counter },
    ids: [...ids, ...adapters.map(({ id }) => id)],
    tree: await readProjectTree(root, env),
    content: { title: "T", notes: [], facts: [] },
    ...{ verbosityOf: {}, defaultOnOverflow: "drop" as const, force: false },
    onDrop: "warn" as const,
  };
}

test("a check says of limits what audit says, before and after inject, and inject breaks none", {
  timeout: 600_000,
}, async () => {
  const property = fc.asyncProperty(fc.array(entry, { maxLength: 8 }), links, tools, async (entries, linked, ids) => {
    const repository = writeRepository(entries, linked);
    try {
      const given = await optionsFor(repository, ids);
      const brokenNow = async () => {
        const states = await injectionStatus(given);
        const over = states.filter(({ state }) => state === "over the limit");
        return { states, over: [...new Set(over.flatMap((each) => each.tools))].sort() };
      };
      const before = await overTheLimit(repository, ids);
      expect((await brokenNow()).over).toEqual(before);
      const { results, faults } = await injectFiles({ ...given, dryRun: false });
      const after = await overTheLimit(repository, ids);
      const checked = await brokenNow();
      expect(checked.over).toEqual(after);
      expect(after.filter((id) => !before.includes(id))).toEqual([]);
      const isDone = results.every(({ status }) => status === "ok" || status === "imported");
      expect(checked.states.every(({ holds }) => holds)).toBe(isDone && after.length + faults.length === 0);
    } finally {
      rmSync(repository.base, { recursive: true, force: true });
    }
  });
  // A link that leads nowhere gives Codex a second file as soon as another tool's file is created.
  const override: Entry = { folder: "", name: "AGENTS.override.md", bytes: 32_700, kind: "ascii" };
  const dangling: [Entry[], string[], string[]] = [[override], ["a/AGENTS.md"], ["codex-cli", "devin-desktop"]];
  await fc.assert(property, { numRuns, examples: [dangling] });
});
