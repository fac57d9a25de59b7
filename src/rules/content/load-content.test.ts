import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { type ContentProblem, type LayerDirectory, loadContent } from "./load-content.ts";

const root = mkdtempSync(join(tmpdir(), "plimsoll-content-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const adapterSchema = z
  .strictObject({ id: z.string(), type: z.string() })
  .transform((adapter) => ({ id: adapter.id, over: () => adapter }));
const loadAdapterSchema = async () => adapterSchema;
let count = 0;

/** Creates a content directory with these files. */
function content(files: Record<string, string | Buffer>): string {
  const directory = join(root, String(count++));
  mkdirSync(directory);
  for (const [name, text] of Object.entries(files)) {
    const path = join(directory, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  return directory;
}

async function load(directory: string, layer: Partial<LayerDirectory> = {}) {
  const layers = [{ layer: "project" as const, strictness: "error" as const, ...layer, directory }];
  const loaded = await loadContent({ layers, loadAdapterSchema });
  const sources = loaded.packs.flatMap(({ sources }) => sources);
  return { ...loaded, sources, lines: loaded.problems.map((problem) => shown(directory, problem)) };
}

function shown(directory: string, { file, line, severity, rule }: ContentProblem): string {
  return `${relative(directory, file)}:${line} ${severity} ${rule}`;
}

const everything = {
  "packs/cap/pack.yaml": `id: cap
name: CAP
description: About CAP
tags: [cloud, 2024, on]
profiles: [cap-developer]
weight: 100
base: yes
overlaps: [btp-core]
detect: [mta.yaml, "*.cds"]
globs: [srv/**]
nested: true
additive: true
additive_position: before
locales:
  de: { name: CAP de, description: Über }
versions: { "@sap/cds": 9.10, other: "1" }
changelog: ["a: b", 2]
`,
  "packs/cap/context.md": "\uFEFF## CAP\r\n\r\nText\r\n",
  "packs/cap/context.de.md": "## CAP de\n",
  "packs/cap/context.expanded.md": "## CAP more\n",
  "packs/cap/constraints.md": "1. Never\n",
  "packs/cap/preamble.md": "> First",
  "packs/cap/tips.md": "## Tip\n",
  "packs/cap/tips.de.md": "## Tipp\n",
  "packs/cap/samples.yaml":
    "- {id: cap/a, label: L, url: 'https://x', description: D, tags: [x], inject: true}\n- {label: M}\n",
  "packs/cap/known_errors.yaml": "- {id: cap/e, pattern: P, cause: C, fix: F, docs: 'https://d', tags: [t]}\n",
  "packs/cap/learning.yaml":
    "profile_filters: {products: [a], product_categories: [b], roles: [c]}\njourneys:\n  - {slug: some-course, featured: true}\n  - {slug: 4327}\n",
  "packs/cap/mcp.yaml": "- id: anything\n  nested: {goes: [1, 2]}\n",
  "packs/cap/news-episodes.json": "not read",
  "packs/cap/skills/tutorial/SKILL.md": "---\r\nname: tutorial\r\ndescription: How to learn\r\n---\r\nText\r\n",
  "packs/cap/skills/tutorial/scripts/run.sh": "#!/bin/sh\n",
  "profiles/cap-developer.yaml":
    "id: cap-developer\nname: CAP developer\ndescription: Builds\npacks:\n  - id: cap\n    weight: 100\n  - {id: btp}\ntip_tags: [cap]\n",
  "adapters/tool.yaml": "id: tool\ntype: file-inject\n",
  "adapters/README.md": "not read",
};

test("loads every key and file of the format", async () => {
  const directory = content(everything);
  const { sources, profiles, adapters, lines } = await load(directory);
  expect(lines).toEqual([]);
  expect(sources).toEqual([
    {
      ...{ id: "cap", name: "CAP", description: "About CAP", tags: ["cloud", "2024", "on"], weight: 100 },
      ...{ base: true, additive: true, additivePosition: "before", overlaps: ["btp-core"] },
      detect: ["mta.yaml", "*.cds"],
      profiles: ["cap-developer"],
      locales: { de: { name: "CAP de", description: "Über" } },
      versions: { "@sap/cds": "9.10", other: "1" },
      changelog: ["a: b", "2"],
      texts: {
        "constraints.md": "1. Never\n",
        "context.de.md": "## CAP de\n",
        "context.expanded.md": "## CAP more\n",
        "context.md": "## CAP\n\nText\n",
        "preamble.md": "> First",
      },
      samples: [
        { id: "cap/a", label: "L", url: "https://x", description: "D", tags: ["x"], inject: true },
        { id: "M", label: "M", url: "", description: "", tags: [], inject: false },
      ],
      knownErrors: [{ id: "cap/e", pattern: "P", cause: "C", fix: "F", docs: "https://d", tags: ["t"] }],
      learning: [
        expect.objectContaining({ slug: "some-course", title: "", url: "", featured: true }),
        expect.objectContaining({ slug: "4327", featured: false }),
      ],
      ...{ globs: ["srv/**"], nested: true, optional: false },
      skills: [
        {
          ...{ name: "tutorial", description: "How to learn" },
          files: {
            "SKILL.md": "---\nname: tutorial\ndescription: How to learn\n---\nText\n",
            "scripts/run.sh": "#!/bin/sh\n",
          },
        },
      ],
      directory: join(directory, "packs", "cap"),
    },
  ]);
  expect(profiles).toEqual([
    {
      ...{ id: "cap-developer", name: "CAP developer", description: "Builds" },
      packs: [{ id: "cap", weight: 100 }, { id: "btp" }],
    },
  ]);
  expect(adapters).toEqual([{ id: "tool", type: "file-inject" }]);
});

test("an id is enough, and keys without a value are absent", async () => {
  const { sources, lines } = await load(content({ "packs/a/pack.yaml": "id: a\nweight:\ntags:\nlocales: ~\n" }));
  expect(lines).toEqual([]);
  expect(sources).toEqual([expect.objectContaining({ id: "a", name: "", tags: [], weight: 0, texts: {} })]);
});

test("empty files are empty lists or mappings", async () => {
  const files = {
    "packs/a/pack.yaml": "id: a\n",
    "packs/a/samples.yaml": "# none\n",
    "packs/a/learning.yaml": "",
  };
  expect((await load(content(files))).lines).toEqual([]);
});

test("reports every problem of every file with its line, not only the first", async () => {
  const { sources, lines, problems } = await load(
    content({
      "packs/a/pack.yaml": "id: a\nwieght: 3\nweight: heavy\nbase: maybe\nlocales:\n  de:\n    nmae: x\n",
      "packs/a/samples.yaml": "- label: x\n- lable: y\n",
      "packs/a/known_errors.yaml": "pattern: x\n",
      "packs/a/learning.yaml": "journeys:\n  - title: no slug\n",
      "packs/b/pack.yaml": "id: b\nname: a: b\n",
      "packs/b/samples.yaml": "- {label: [}\n",
      "packs/c/context.md": "text\n",
      "packs/d/pack.yaml": "name: no id\n",
      "profiles/p.yaml": "id: p\npacks: [{wait: 3}]\n",
      "adapters/t.yaml": "id: t\n",
    }),
  );
  expect(lines).toEqual([
    "packs/a/pack.yaml:2 error unknown-key",
    "packs/a/pack.yaml:3 error invalid-value",
    "packs/a/pack.yaml:4 error invalid-value",
    "packs/a/pack.yaml:7 error unknown-key",
    "packs/a/samples.yaml:2 error unknown-key",
    "packs/a/samples.yaml:2 error missing-key",
    "packs/a/known_errors.yaml:1 error invalid-value",
    "packs/a/learning.yaml:2 error missing-key",
    ...lines.filter((line) => /packs\/b\/.*malformed-yaml/.test(line)),
    "packs/c/pack.yaml:1 error missing-pack-file",
    "packs/d/pack.yaml:1 error missing-key",
    "profiles/p.yaml:2 error unknown-key",
    "profiles/p.yaml:2 error missing-key",
    "adapters/t.yaml:1 error missing-key",
  ]);
  expect(lines.some((line) => line.startsWith("packs/b/pack.yaml:2"))).toBe(true);
  expect(lines.some((line) => line.startsWith("packs/b/samples.yaml:1"))).toBe(true);
  expect(problems.map(({ message }) => message)).toEqual(
    expect.arrayContaining([
      'unknown key "wieght". Did you mean "weight"?',
      '"weight" must be a whole number, not "heavy"',
      '"base" must be true or false, not "maybe"',
      'unknown key "locales.de.nmae". Did you mean "name"?',
      'unknown key "[1].lable". Did you mean "label"?',
      "must be a list, not a mapping",
      '"journeys[0].slug" is missing',
      expect.stringMatching(/^unknown key "packs\[0\]\.wait"/),
    ]),
  );
  expect(sources).toEqual([]);
});

test("an unknown key is a warning in content that others maintain, and the rest is used", async () => {
  const directory = content({ "packs/a/pack.yaml": "id: a\nweight: 3\nowner: me\n" });
  const { sources, lines } = await load(directory, { layer: "company", strictness: "warning" });
  expect(lines).toEqual(["packs/a/pack.yaml:3 warning unknown-key"]);
  expect(sources).toEqual([expect.objectContaining({ id: "a", weight: 3 })]);
});

test("leaves an adapter file without an id out of content that others maintain", async () => {
  const files = { "adapters/index.yaml": "tools: []\n", "adapters/t.yaml": "id: t\ntype: x\n" };
  const lenient = await load(content(files), { strictness: "warning" });
  expect(lenient.lines).toEqual(["adapters/index.yaml:1 warning missing-key"]);
  expect(lenient.adapters.map(({ id }) => id)).toEqual(["t"]);
  expect((await load(content(files))).lines).toContain("adapters/index.yaml:1 error missing-key");
});

test("two packs of one id in a layer are an error, and an id unlike its folder is a warning", async () => {
  const { sources, lines, problems } = await load(
    content({
      "packs/a/pack.yaml": "id: a\n",
      "packs/b/pack.yaml": "name: B\nid: a\n",
      "profiles/x.yaml": "id: p\n",
      "profiles/y.yaml": "id: p\n",
    }),
  );
  expect(lines).toEqual([
    "packs/b/pack.yaml:2 warning id-mismatch",
    "packs/b/pack.yaml:2 error duplicate-id",
    "profiles/x.yaml:1 warning id-mismatch",
    "profiles/y.yaml:1 warning id-mismatch",
    "profiles/y.yaml:1 error duplicate-id",
  ]);
  expect(problems[1]?.message).toMatch(/^id "a" is already used by .*packs\/a\/pack\.yaml$/);
  expect(sources).toHaveLength(1);
});

test("refuses ids that are not names, such as __proto__ and paths", async () => {
  const { sources, lines } = await load(
    content({
      "packs/a/pack.yaml": "id: __proto__\n",
      "packs/b/pack.yaml": "id: ../b\n",
      "packs/c/pack.yaml":
        'id: c\n__proto__: {x: 1}\nversions: {__proto__: "1", ok: "2"}\nlocales: {__proto__: {name: x}}\n',
    }),
  );
  expect(lines).toEqual([
    "packs/a/pack.yaml:1 error invalid-value",
    "packs/b/pack.yaml:1 error invalid-value",
    "packs/c/pack.yaml:2 error unknown-key",
  ]);
  expect(sources.map(({ id }) => id)).toEqual(["c"]);
  expect(({} as { x?: number }).x).toBeUndefined();
});

test("built-in profiles cannot be replaced", async () => {
  const { profiles, lines } = await load(content({ "profiles/minimal.yaml": "name: x\nid: minimal\n" }));
  expect(lines).toEqual(["profiles/minimal.yaml:2 error reserved-id"]);
  expect(profiles).toEqual([]);
});

test("refuses a file that is too large before reading it", async () => {
  const directory = content({ "packs/a/pack.yaml": "id: a\n", "packs/a/context.md": "x" });
  // More than Node can read into memory.
  truncateSync(join(directory, "packs/a/context.md"), 3 * 1024 ** 3);
  const { lines, problems } = await load(directory);
  expect(lines).toEqual(["packs/a/context.md:1 error too-large"]);
  expect(problems[0]?.message).toContain("3221225472 bytes");
});

test("refuses a text that is not UTF-8 with its line", async () => {
  const { lines } = await load(
    content({
      "packs/a/pack.yaml": "id: a\n",
      "packs/a/context.md": Buffer.from([0x61, 0x0a, 0xff, 0x0a]),
      "packs/a/constraints.md": Buffer.from([0xff, 0xfe, 0x61, 0x00]),
      "packs/a/preamble.md": Buffer.from([0x61, 0x00]),
    }),
  );
  expect(lines).toEqual([
    "packs/a/constraints.md:1 error not-text",
    "packs/a/context.md:2 error not-text",
    "packs/a/preamble.md:1 error not-text",
  ]);
});

test("does not wait for an entry that is not a file", async () => {
  const directory = content({ "packs/a/pack.yaml": "id: a\n", "packs/b/pack.yaml/x": "" });
  execFileSync("mkfifo", [join(directory, "packs/a/context.md")]);
  expect((await load(directory)).lines).toEqual([
    "packs/a/context.md:1 error not-a-file",
    "packs/b/pack.yaml:1 error not-a-file",
  ]);
});

test("follows links inside the directory, and links out of it only in the user's own layer", async () => {
  const outside = content({ "pack/pack.yaml": "id: linked\n", "secret.md": "secret\n" });
  const directory = content({ "packs/a/pack.yaml": "id: a\n", "shared/b/pack.yaml": "id: b\n" });
  symlinkSync("../shared/b", join(directory, "packs/b"));
  symlinkSync(join(outside, "pack"), join(directory, "packs/linked"));
  symlinkSync(join(outside, "secret.md"), join(directory, "packs/a/context.md"));
  symlinkSync("nowhere", join(directory, "packs/broken"));
  const project = await load(directory);
  expect(project.lines).toEqual([
    "packs/broken:1 error unreadable",
    "packs/linked:1 error outside-link",
    "packs/a/context.md:1 error outside-link",
  ]);
  expect(project.sources.map(({ id, texts }) => [id, texts])).toEqual([
    ["a", {}],
    ["b", {}],
  ]);
  const user = await load(directory, { layer: "user" });
  expect(user.sources.map(({ id }) => id)).toEqual(["a", "b", "linked"]);
  expect(user.sources[0]?.texts).toEqual({ "context.md": "secret\n" });
});

test("warns about a misspelled file name", async () => {
  const { lines, problems } = await load(
    content({
      "packs/a/pack.yaml": "id: a\nadditive_position: before\n",
      "packs/a/sample.yaml": "[]",
      "packs/a/contxt.md": "x",
      "packs/a/tools.yaml": "a: [\n",
      "packs/a/README.md": "x",
      "packs/notes/NOTES.md": "x",
      "adapters/t.yml": "id: t\n",
      "packs/.DS_Store": "",
    }),
  );
  expect(lines).toEqual([
    "packs/a/contxt.md:1 warning unknown-file",
    "packs/a/sample.yaml:1 warning unknown-file",
    expect.stringMatching(/^packs\/a\/tools\.yaml:\d warning malformed-yaml$/),
    "packs/a/pack.yaml:2 warning unused-key",
    "packs/notes/pack.yaml:1 warning missing-pack-file",
    "adapters/t.yml:1 warning unknown-file",
  ]);
  expect(problems[0]?.message).toBe('is not read. Did you mean "context.md"?');
});

test("later layers win by id over the compiled content", async () => {
  const low = content({ "profiles/p.yaml": "id: p\nname: low\n", "adapters/t.yaml": "id: t\ntype: low\n" });
  const high = content({ "packs/a/pack.yaml": "id: a\n", "adapters/t.yaml": "id: t\ntype: high\n" });
  const embedded = {
    sources: [],
    profiles: [{ id: "o", name: "o", description: "", packs: [] }],
    adapters: [
      { id: "t", type: "embedded" },
      { id: "s", type: "embedded" },
    ],
  };
  const layers = [
    { layer: "company" as const, directory: low, strictness: "warning" as const },
    { layer: "project" as const, directory: high, strictness: "error" as const },
  ];
  const loaded = await loadContent({ layers, embedded, loadAdapterSchema });
  expect(loaded.adapters).toEqual([
    { id: "s", type: "embedded" },
    { id: "t", type: "high" },
  ]);
  expect(loaded.profiles.map(({ name }) => name)).toEqual(["o", "low"]);
  expect(loaded.packs.map(({ layer, sources }) => [layer, sources.length])).toEqual([
    ["embedded", 0],
    ["company", 0],
    ["project", 1],
  ]);
});

test("a missing directory is empty, unless the user named it", async () => {
  const missing = join(root, "missing");
  expect((await load(missing)).problems).toEqual([]);
  expect((await load(missing, { required: true })).problems[0]).toMatchObject({
    rule: "no-content",
    file: missing,
  });
  expect((await load(content({ a: "" }), { required: true })).problems[0]?.message).toContain("packs/");
});

test("reports a file instead of a directory, whoever named it", async () => {
  const file = join(content({ a: "" }), "a");
  for (const required of [true, false]) {
    expect((await load(file, { required })).problems).toMatchObject([{ file, message: "is not a directory" }]);
  }
  expect((await load(join(file, "b"), { required: true })).problems).toMatchObject([{ message: "no such directory" }]);
  expect((await load(join(file, "b"))).problems).toEqual([]);
  const circle = content({});
  symlinkSync("loop", join(circle, "loop"));
  expect((await load(join(circle, "loop"))).problems[0]?.message).toContain("in a circle");
});
