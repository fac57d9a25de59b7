/** In any repository with nested files, links, imports, overrides, local files and files under HOME: inject hides nothing that a tool
 *  read before, each named tool gets the block once in every folder, and where it does not, inject and a check say so. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
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
import { chooseAdapters, injectFiles, injectionStatus, readProjectTree } from "../../src/rules/index.ts";
import { createPackSource, mergeLayers, orderPacks } from "../../src/rules/packs/index.ts";
import { caseCount } from "../case-count.ts";
import { makeRepository } from "../make-repository.ts";

const numRuns = caseCount({ few: 5, deep: 150, long: 600 });
const content = fileURLToPath(new URL("../../content", import.meta.url));
const { adapters: known } = await loadContent<Adapter>({
  layers: [{ layer: "embedded", directory: content, strictness: "error", required: true }],
  loadAdapterSchema: async () => adapterFileSchema,
});
const counter = await createCounter("bytes/4");
const source = createPackSource({
  pack: { id: "a", base: true },
  texts: { "context.md": "Our rule.\n" },
  directory: "a",
});
const packs = orderPacks(mergeLayers([{ layer: "embedded", sources: [source] }], { language: "en" }).packs);

const folders = ["", "a", "a/b", "d"];
const names = [
  ...["AGENTS.md", "AGENTS.md", "CLAUDE.md", "CLAUDE.md", "GEMINI.md", "AGENTS.override.md", "CLAUDE.local.md"],
  ...[".claude/CLAUDE.md", ".claude/rules/team.md", ".github/copilot-instructions.md", ".pi/APPEND_SYSTEM.md"],
];
const homeNames = [
  ...[".claude/CLAUDE.md", ".codex/AGENTS.md", ".codex/AGENTS.override.md", ".gemini/GEMINI.md"],
  ...[".copilot/copilot-instructions.md", ".config/opencode/AGENTS.md", ".pi/agent/AGENTS.md"],
];
const file = fc.record({
  path: fc.tuple(fc.constantFrom(...folders), fc.constantFrom(...names)).map(([folder, name]) => join(folder, name)),
  text: fc.constantFrom("plain", "plain", "plain", "import of AGENTS.md", "only an import of AGENTS.md"),
});
const link = fc.record({
  path: fc.constantFrom("CLAUDE.md", "GEMINI.md", "AGENTS.md", "a/AGENTS.md", "a/CLAUDE.md", "d/GEMINI.md"),
  to: fc.constantFrom("AGENTS.md", "CLAUDE.md", "a/AGENTS.md"),
});
const repositories = fc
  .record({
    files: fc.uniqueArray(file, { maxLength: 8, selector: ({ path }) => path }),
    links: fc.uniqueArray(link, { maxLength: 2, selector: ({ path }) => path }),
    homeFiles: fc.subarray(homeNames, { maxLength: 2 }),
    tools: fc.subarray(
      [
        "agents-md",
        "claude-code",
        "codex-cli",
        "copilot-cli",
        "gemini-cli",
        "opencode",
        "pi",
        "cursor",
        "github-copilot",
      ],
      { minLength: 1 },
    ),
  })
  .map((drawn) => {
    // Links to people's files only. If a run creates a file that two links lead to, inject may report a fault wrongly.
    const isFile = (wanted: string) => drawn.files.some(({ path }) => path === wanted);
    return { ...drawn, links: drawn.links.filter(({ path, to }) => isFile(to) && path !== to && !isFile(path)) };
  });
type Drawn = typeof repositories extends fc.Arbitrary<infer Value> ? Value : never;

/** The tools whose files were compared with the real program, and what they look for in a folder. */
const ownNames: Readonly<Record<string, readonly string[]>> = {
  "claude-code": ["CLAUDE.md", ".claude/CLAUDE.md", ".claude/rules/team.md", "CLAUDE.local.md", "AGENTS.md"],
  "codex-cli": ["AGENTS.md", "AGENTS.override.md"],
  "copilot-cli": ["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"],
  "gemini-cli": ["GEMINI.md"],
  opencode: ["AGENTS.md", "CLAUDE.md"],
  pi: ["AGENTS.md", "CLAUDE.md"],
};

interface Repository {
  readonly root: string;
  readonly home: string;
  remove(): void;
}

function writeRepository({ files, links, homeFiles }: Drawn): Repository {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-load-")));
  const [root, home] = [join(base, "project"), join(base, "home")];
  makeRepository(root);
  mkdirSync(home);
  const write = (path: string, text: string) => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  };
  for (const { path, text } of files) {
    const own = text.startsWith("only") ? "" : `Text of people in ${path}.\n`;
    write(join(root, path), text === "plain" ? own : `${own}@AGENTS.md\n`);
  }
  for (const { path, to } of links) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    symlinkSync(relative(dirname(path), to), join(root, path));
  }
  for (const path of homeFiles) write(join(home, path), `Text at home in ${path}.\n`);
  return { root, home, remove: () => rmSync(base, { recursive: true, force: true }) };
}

/** What each tool reads in each folder: files with text of people, and how often the block. The files are read as they are on the
 *  disk, so nothing here knows what inject planned. */
async function readAll({ root, home }: Repository) {
  const rows = new Map<
    string,
    { readonly tool: string; readonly folder: string; readonly own: Set<string>; readonly blocks: number }
  >();
  for (const folder of folders.filter((each) => existsSync(join(root, each)))) {
    const report = await audit({ adapters: known, directory: join(root, folder), home, cwd: root, counter, all: true });
    for (const { id, files } of report.tools.filter((tool) => tool.id in ownNames)) {
      const texts = files
        .filter(({ via }) => !via.includes("on demand"))
        .map(({ path }) => path.replace(/^~/, home))
        .map((path) => ({ path: realpathSync(join(path.startsWith("/") ? "/" : root, path)) }))
        .map(({ path }) => ({ path, text: readFileSync(path, "utf8") }));
      const own = new Set(texts.filter(({ text }) => text.includes("Text ")).map(({ path }) => path));
      const blocks = texts.filter(({ text }) => text.includes("Our rule.")).length;
      rows.set(`${id} in ${folder || "."}`, { tool: id, folder: join(root, folder), own, blocks });
    }
  }
  return rows;
}

async function prepare({ root, home }: Repository, tools: readonly string[]) {
  const places = { scope: "project" as const, root, home };
  const env = { HOME: home };
  const adapters = await chooseAdapters(known, { tools, all: false, places, env });
  return {
    ...{ adapters, known, everyAdapter: known, standing: [], ownFiles: [], places, env, packs, counter },
    ids: [...tools, ...adapters.map(({ id }) => id)],
    tree: await readProjectTree(root, env),
    content: { title: "T", notes: [], facts: [] },
    ...{ verbosityOf: {}, defaultOnOverflow: "drop" as const, force: false },
    onDrop: "warn" as const,
  };
}

test("each named tool gets the block once in every folder, keeps what it read, or is named", {
  timeout: 900_000,
}, async () => {
  const property = fc.asyncProperty(repositories, async (drawn) => {
    const repository = writeRepository(drawn);
    try {
      const before = await readAll(repository);
      const { faults, results } = await injectFiles({ ...(await prepare(repository, drawn.tools)), dryRun: false });
      fc.pre(results.every(({ status }) => status === "ok" || status === "imported"));
      const after = await readAll(repository);
      const states = await injectionStatus(await prepare(repository, drawn.tools));
      for (const [row, { tool, folder, own, blocks }] of after) {
        if (!drawn.tools.includes(tool) || !isPlace(drawn, { tool, folder: relative(repository.root, folder) }))
          continue;
        const lost = [...before.get(row)!.own].filter((path) => !own.has(path));
        const named = faults.filter((fault) => fault.tool === tool && fault.folder === folder);
        expect({ row, lost, found: judge(blocks) }).toEqual({ row, lost: [], found: nameFault(named) });
        if (named.length === 0) continue;
        const words = states.filter(({ tools }) => tools.includes(tool)).map(({ state }) => state);
        expect(words).toContain(named[0]!.kind);
      }
      expect(states.every(({ holds }) => holds)).toBe(faults.length === 0);
    } finally {
      repository.remove();
    }
  });
  await fc.assert(property, { numRuns });
});

/** The load model looks at the root, and at folders with a file of the tool. In others a tool reads what it reads above. */
function isPlace(
  { files, links }: Drawn,
  { tool, folder }: { readonly tool: string; readonly folder: string },
): boolean {
  const paths = [...files, ...links].map(({ path }) => relative(folder, path));
  return folder === "" || paths.some((path) => ownNames[tool]!.includes(path));
}

function judge(blocks: number): string {
  return blocks === 1 ? "once" : blocks > 1 ? "twice" : "none";
}

/** What the faults of a tool in a folder say. */
function nameFault(faults: readonly { readonly kind: string }[]): string {
  const kinds = new Set(faults.map(({ kind }) => kind));
  if (kinds.size === 0) return "once";
  return kinds.has("twice") ? "twice" : "none";
}
