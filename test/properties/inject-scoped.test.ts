/** For any packs with globs, nested folders and skills, and any files that a team already has: a second inject changes nothing, `--check`
 *  holds exactly if inject did, no pack is lost or loaded twice, and uninstall gives every byte back. */
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { createCounter } from "../../src/core/tokens/index.ts";
import type { Adapter } from "../../src/rules/adapters/adapter.ts";
import { adapterFileSchema } from "../../src/rules/adapters/adapter-schema.ts";
import { loadContent } from "../../src/rules/content/load-content.ts";
import {
  chooseAdapters,
  injectFiles,
  injectionStatus,
  readProjectTree,
  type TargetResult,
  uninstallFiles,
} from "../../src/rules/index.ts";
import { createPackSource, mergeLayers, orderPacks, type Pack } from "../../src/rules/packs/index.ts";
import { makeRepository } from "../make-repository.ts";

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 100 : 3;
const content = fileURLToPath(new URL("../../content", import.meta.url));

/** Adapters that change a few keys of the built-in ones, as a project may have them. */
const partial = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-partial-")));
afterAll(() => rmSync(partial, { recursive: true, force: true }));
mkdirSync(join(partial, "adapters"));
for (const [id, lines] of Object.entries({
  "agents-md": "verbosity: minimal\n",
  "claude-code": "max_tokens: 4000\nverbosity: standard\n",
  cursor: "max_bytes: 9000\n",
  "gemini-cli": "targets:\n  - { scope: project, path: docs/GEMINI.md }\n",
}))
  writeFileSync(join(partial, "adapters", `${id}.yaml`), `id: ${id}\n${lines}`);

async function loadAdapters(isPartial: boolean): Promise<readonly Adapter[]> {
  const embedded = { layer: "embedded", directory: content, strictness: "error", required: true } as const;
  const own = { layer: "project", directory: partial, strictness: "error", required: true } as const;
  const layers = isPartial ? [embedded, own] : [embedded];
  const { adapters, problems } = await loadContent<Adapter>({
    layers,
    loadAdapterSchema: async () => adapterFileSchema,
  });
  expect(problems).toEqual([]);
  return adapters;
}
const [builtIn, changed] = [await loadAdapters(false), await loadAdapters(true)];
expect(changed.filter((adapter, index) => JSON.stringify(adapter) !== JSON.stringify(builtIn[index]))).toHaveLength(4);
const counter = await createCounter("bytes/4");

const glob = fc.constantFrom("a/**", "a/b/*.ts", "c/{d,e}/**", "missing/**", "**/*.ts", "*.md", "a/own/**");
const skillFiles = fc.record(
  {
    "notes.md": fc.constantFrom("Notes.\n", "Notes\r\nhere", ""),
    "scripts/run it.sh": fc.constantFrom("#!/bin/sh\n", "größe\n"),
  },
  { requiredKeys: [] },
);
const skill = fc.record({ name: fc.constantFrom("deploy", "review"), files: skillFiles }).map(({ name, files }) => ({
  name,
  description: `How to ${name}.`,
  files: { ...files, "SKILL.md": `---\nname: ${name}\ndescription: How to ${name}.\n---\n# ${name}\n` },
}));
const ids = ["p1", "p2", "p3", "p4", "p5"];
/** A line that shows where a pack went. */
const lineOf = (id: string) => `- The rule of ${id}.`;
const source = fc
  .record({
    id: fc.constantFrom(...ids),
    globs: fc.array(glob, { maxLength: 2 }),
    nested: fc.boolean(),
    base: fc.boolean(),
    skills: fc.uniqueArray(skill, { maxLength: 2, selector: ({ name }) => name }),
  })
  .map(({ skills, ...pack }) =>
    createPackSource({
      pack,
      skills,
      texts: { "context.md": `## ${pack.id}\n\n${lineOf(pack.id)}\n` },
      directory: pack.id,
    }),
  );
const sources = fc.uniqueArray(source, { selector: ({ id }) => id, minLength: 1, maxLength: 5 });
const tools = fc.subarray(
  ["agents-md", "claude-code", "cursor", "devin-desktop", "gemini-cli", "github-copilot", "kiro", "replit"],
  { minLength: 1 },
);
/** Files of the team, as byte strings. */
const files = fc.dictionary(
  fc.constantFrom(
    ...["AGENTS.md", "CLAUDE.md", "a/AGENTS.md", "c/d/AGENTS.md", "a/b/file.ts", "c/e/file.ts", "a/own/.plimsoll/x"],
    ...[".claude/rules/plimsoll-p1.md", ".claude/rules/team.md", ".cursor/rules/plimsoll-p2.mdc"],
    ...[".claude/skills/deploy/SKILL.md", ".claude/skills/deploy/notes.md", ".agents/skills/review/notes.md"],
  ),
  fc.constantFrom("# Ours\n", "# Ours\r\n\r\nno end", "\xef\xbb\xbf", "caf\xe9\n", "@AGENTS.md\n"),
  { maxKeys: 6 },
);

function describeTree(root: string): Record<string, string> {
  const names = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) => !name.startsWith(".git"));
  const paths = names.filter((name) => lstatSync(join(root, name)).isFile()).sort();
  return Object.fromEntries(paths.map((path) => [path, readFileSync(join(root, path), "latin1")]));
}

async function optionsFor(
  root: string,
  given: { tools: readonly string[]; sources: Parameters<typeof orderPacks>[0]; known?: readonly Adapter[] },
) {
  const { known = builtIn } = given;
  const places = { scope: "project" as const, root, home: join(root, "../home") };
  const env = { HOME: places.home };
  const adapters = await chooseAdapters(known, { tools: given.tools, all: false, places, env });
  return {
    ...{ adapters, known, everyAdapter: known, standing: [], ownFiles: [], places, env, packs: given.sources, counter },
    ids: adapters.map(({ id }) => id),
    tree: await readProjectTree(root, env),
    content: { title: "T", notes: [], facts: [] },
    ...{ onDrop: "warn" as const, verbosityOf: {}, defaultOnOverflow: "drop" as const, force: false },
  };
}

test("inject with scopes is idempotent and complete, a check agrees, and uninstall gives the bytes back", {
  timeout: 600_000,
}, async () => {
  const property = fc.asyncProperty(
    sources,
    sources,
    tools,
    files,
    fc.boolean(),
    async (first, second, chosen, own, isPartial) => {
      const known = isPartial ? changed : builtIn;
      const base = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-scoped-")));
      const root = join(base, "project");
      try {
        makeRepository(root);
        for (const [path, bytes] of Object.entries(own)) {
          mkdirSync(dirname(join(root, path)), { recursive: true });
          writeFileSync(join(root, path), Buffer.from(bytes, "latin1"));
        }
        const before = describeTree(root);
        const packsOf = (given: typeof first) =>
          orderPacks(mergeLayers([{ layer: "project", sources: given }], { language: "en" }).packs);
        for (const given of [first, second]) {
          const options = await optionsFor(root, { tools: chosen, sources: packsOf(given), known });
          const { results, faults } = await injectFiles({ ...options, dryRun: false });
          const written = describeTree(root);
          // The team's own neighbouring files keep their bytes.
          for (const [path, bytes] of Object.entries(before)) expect(written[path]?.startsWith(bytes)).toBe(true);
          const { results: again } = await injectFiles({ ...options, dryRun: false });
          expect(again.filter(({ change }) => change?.written)).toEqual([]);
          expect(describeTree(root)).toEqual(written);
          const states = (await injectionStatus(options)).filter(({ state }) => state !== "left over");
          const isWritten = results.every(({ status }) => status === "ok" || status === "imported");
          const isDone = isWritten && faults.length === 0;
          expect({ isDone, states: states.filter(({ holds }) => !holds).length === 0 }).toEqual({
            isDone,
            states: isDone,
          });
        }
        const last = await optionsFor(root, { tools: chosen, sources: packsOf(second), known });
        const removed = await uninstallFiles({ ...last, dryRun: false });
        expect(removed.filter(({ problem }) => problem !== undefined)).toEqual([]);
        expect(describeTree(root)).toEqual(before);
      } finally {
        rmSync(base, { recursive: true, force: true });
      }
    },
  );
  await fc.assert(property, { numRuns });
});

/** The packs that a tool gets in no way, or in two ways. A nested pack about a folder that is missing goes nowhere. */
function misplaced(adapter: Adapter, results: readonly TargetResult[], packs: readonly Pack[]): string[] {
  const read = results.filter(({ adapters, kind }) => adapters.includes(adapter) && kind !== "skill");
  return packs
    .filter(({ globs, nested }) => !nested || globs.some((each) => each !== "missing/**" && each !== "a/own/**"))
    .flatMap(({ id }) => {
      const kinds = new Set(read.filter((each) => each.packs.includes(id)).map(({ kind }) => kind));
      return kinds.size === 1 ? [] : [`${adapter.id} gets ${id} in ${[...kinds].join(" and ") || "no file"}`];
    });
}

test("each tool gets each pack once, in its block, in a rule, or in a folder", { timeout: 600_000 }, async () => {
  const property = fc.asyncProperty(sources, tools, async (given, chosen) => {
    const base = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-once-")));
    const root = join(base, "project");
    try {
      makeRepository(root);
      for (const folder of ["a/b", "a/own", "c/d", "c/e"]) mkdirSync(join(root, folder), { recursive: true });
      const { packs } = mergeLayers([{ layer: "project", sources: given }], { language: "en" });
      const options = await optionsFor(root, { tools: chosen, sources: orderPacks(packs) });
      const { results } = await injectFiles({ ...options, dryRun: false });
      for (const { path, packs: shown, kind } of results.filter(({ kind }) => kind !== "skill")) {
        const text = readFileSync(path, "utf8");
        expect({ kind, shown: packs.map(({ id }) => id).filter((id) => text.includes(lineOf(id))) }).toEqual({
          kind,
          shown: [...shown].sort(),
        });
      }
      expect(options.adapters.flatMap((adapter) => misplaced(adapter, results, packs))).toEqual([]);
    } finally {
      rmSync(base, { recursive: true, force: true });
    }
  });
  await fc.assert(property, { numRuns });
});
