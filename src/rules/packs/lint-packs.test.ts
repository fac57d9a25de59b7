import { expect, test } from "vitest";
import { type LintInput, lintPacks, type PackBudget, similarPacks } from "./lint-packs.ts";
import { mergeLayers } from "./merge-packs.ts";
import { orderPacks, type PackSource } from "./pack.ts";
import { createPackSource, type PackFile } from "./read-pack.ts";

function source(pack: PackFile, texts: Record<string, string> = { "context.md": `## ${pack.id}\n` }): PackSource {
  return createPackSource({ pack, texts, directory: `packs/${pack.id}` });
}

/** Packs with the names in `shipped` are merged but cannot be changed. */
function lint(sources: readonly PackSource[], rest: Partial<LintInput> & { shipped?: readonly string[] } = {}) {
  const { packs } = mergeLayers([{ layer: "project", sources }], { language: "en" });
  const found = lintPacks({
    packs: orderPacks(packs),
    sources: sources.filter(({ id }) => !rest.shipped?.includes(id)),
    ...{ profiles: [], knownIds: [], tools: ["claude-code", "cursor"], budgets: [], ...rest },
  });
  return found.map(({ place, ...finding }) => ({ ...place, ...finding }));
}

function words(from: number, count: number): string {
  return Array.from({ length: count }, (_, index) => `word${from + index}`).join(" ");
}

test("packs without mistakes have no findings", () => {
  const sources = [source({ id: "a", overlaps: ["b", "shipped"] }), source({ id: "b" })];
  expect(lint(sources, { knownIds: ["shipped"] })).toEqual([]);
});

test("an unknown id in overlaps is an error at its place in the list", () => {
  expect(lint([source({ id: "cap" }), source({ id: "btp", overlaps: ["cap", "capp"] })])).toEqual([
    {
      ...{ directory: "packs/btp", key: ["overlaps", 1], severity: "error", rule: "unknown-overlap" },
      message: 'no pack has the id "capp". Did you mean "cap"?',
    },
  ]);
});

test("an unknown id in a profile is an error", () => {
  const profile = {
    id: "web",
    name: "",
    description: "",
    packs: [{ id: "cap" }, { id: "zebra", weight: 3 }],
  };
  expect(lint([source({ id: "cap" })], { profiles: [profile] })).toEqual([
    {
      ...{ profile: "web", key: ["packs", 1, "id"], severity: "error", rule: "unknown-profile-pack" },
      message: 'no pack has the id "zebra". Remove it, or add the pack.',
    },
  ]);
});

test("a featured course without a title is reported, because it is not shown", () => {
  const journeys = [{ slug: "a-b", featured: true }, { slug: "c" }, { slug: "d", title: "D", featured: true }];
  const pack = createPackSource({ pack: { id: "a" }, texts: {}, learning: { journeys }, directory: "packs/a" });
  expect(lint([pack])).toEqual([
    {
      ...{ directory: "packs/a", file: "learning.yaml", line: 1, severity: "warning", rule: "untitled-course" },
      message: "courses without a title are not shown: a-b. Add title: and url:.",
    },
  ]);
});

test("a circle of overlaps is reported once, with its path", () => {
  const circle = [
    source({ id: "c", overlaps: ["a"] }),
    source({ id: "a", overlaps: ["x", "b"] }),
    source({ id: "b", overlaps: ["c"] }),
    source({ id: "x" }),
  ];
  const found = lint(circle);
  expect(found).toMatchObject([{ directory: "packs/a", key: ["overlaps", 1], rule: "overlap-cycle" }]);
  expect(found[0]?.message).toContain("a → b → c → a.");
});

test("two packs that name each other form a circle, and so does a pack that names itself", () => {
  const found = lint([
    source({ id: "a", overlaps: ["b"] }),
    source({ id: "b", overlaps: ["a"] }),
    source({ id: "c", overlaps: ["c"] }),
  ]);
  expect(found.map(({ rule, severity, message }) => [rule, severity, message.split(".")[0]])).toEqual([
    ["overlap-cycle", "error", "overlaps itself"],
    ["overlap-cycle", "error", "overlaps form a circle: a → b → a"],
  ]);
});

test("reports a circle at a place that can be changed, and not at all without one", () => {
  const circle = [source({ id: "a", overlaps: ["b"] }), source({ id: "b", overlaps: ["a"] })];
  expect(lint(circle, { shipped: ["a"] })).toMatchObject([{ directory: "packs/b", key: ["overlaps", 0] }]);
  expect(lint(circle, { shipped: ["a", "b"] })).toEqual([]);
});

test("a long chain of overlaps is not a circle and is checked quickly", () => {
  const chain = Array.from({ length: 2000 }, (_, index) =>
    source({ id: `p${index}`, overlaps: index === 0 ? [] : [`p${index - 1}`] }),
  );
  expect(lint(chain)).toEqual([]);
});

test("packs that share most of their text should declare it, in the weaker pack", () => {
  const strong = source({ id: "strong", weight: 9 }, { "context.md": words(0, 100) });
  const weak = (overlaps: string[]) =>
    source({ id: "weak", weight: 1, overlaps }, { "context.md": `${words(10, 40)} ${words(500, 10)}` });
  const found = lint([strong, weak([])]);
  expect(found).toMatchObject([{ directory: "packs/weak", key: ["id"], severity: "warning", rule: "near-duplicate" }]);
  expect(found[0]?.message).toContain('"weak" and "strong" have nearly the same text: they share 78 % of');
  expect(found[0]?.message).toContain("`overlaps: [strong]`");
  expect(lint([strong, weak(["strong"])])).toEqual([]);
  expect(lint([strong, weak([])], { shipped: ["weak"] })).toMatchObject([{ directory: "packs/strong" }]);
});

test("reports from sixty per cent, and ignores case and punctuation", () => {
  // 30 and 29 of 50 runs of five words are in the other pack.
  const other = source({ id: "a", weight: 2 }, { "context.md": words(0, 200) });
  const pair = (shared: number) => [
    other,
    source({ id: "b" }, { "context.md": `${words(0, shared + 4).toUpperCase()}, ${words(900, 50 - shared)}` }),
  ];
  expect(lint(pair(30))).toHaveLength(1);
  expect(lint(pair(29))).toEqual([]);
});

test("does not advise overlaps for a base pack, which is exempt from them", () => {
  const twins = [true, false].map((base) => source({ id: `p${base}`, base }, { "context.md": words(0, 60) }));
  expect(lint(twins)[0]?.message).toContain("Remove the repeated text from one of them.");
});

test("boilerplate in hundreds of packs neither hides duplicates nor makes pairs", () => {
  const boilerplate = words(0, 30);
  const sources = Array.from({ length: 400 }, (_, index) =>
    source(
      { id: `p${String(index).padStart(3, "0")}` },
      { "context.md": `${boilerplate} ${words(1000 * (index === 399 ? 398 : index) + 1000, 200)}` },
    ),
  );
  const { packs } = mergeLayers([{ layer: "project", sources }], { language: "en" });
  expect(similarPacks(packs).map(({ earlier, later }) => [earlier.id, later.id])).toEqual([["p398", "p399"]]);
});

test("compares large sets by a sample and still finds a duplicate", () => {
  const sources = Array.from({ length: 60 }, (_, index) =>
    source(
      { id: `p${String(index).padStart(2, "0")}` },
      { "context.md": words(20_000 * (index === 59 ? 3 : index), 12_000) },
    ),
  );
  const { packs } = mergeLayers([{ layer: "project", sources }], { language: "en" });
  expect(similarPacks(packs)).toMatchObject([{ earlier: { id: "p03" }, later: { id: "p59" }, share: 1 }]);
});

test("finds a marker without text below it, in every language, but not in code", () => {
  const text = [
    ...["## A", "<!-- verbosity:detail -->", "", "<!-- verbosity:extended -->", "text"],
    ...[
      "```",
      "<!-- verbosity:detail -->",
      "```",
      "<!-- verbosity:core --> same line",
      "<!-- verbosity:detail -->",
      "",
    ],
  ].join("\n");
  const found = lint([source({ id: "a" }, { "context.md": "## A\n", "context.de.md": text })]);
  expect(found.map((each) => [each.rule, "file" in each && each.file, "line" in each && each.line])).toEqual([
    ["empty-tier", "context.de.md", 2],
    ["empty-tier", "context.de.md", 10],
  ]);
});

test("finds headings of level 1 in both spellings, but not in code or comments", () => {
  const text = "# One\n\n## Two\n\n```\n# code\n```\n<!--\n# comment\n-->\nThree\n===\n\n| a |\n===\n#tag\n";
  const found = lint([source({ id: "a" }, { "context.md": text })]);
  expect(found.map((each) => [each.rule, "line" in each && each.line])).toEqual([
    ["heading-level", 1],
    ["heading-level", 11],
  ]);
});

test("sync:fetch lines that cannot work are errors, and odd attributes are warnings", () => {
  const text = [
    '<!-- sync:fetch url="https://example.com/a" -->',
    '<!-- sync:fetch max_lines="3" -->',
    '<!-- sync:fetch url="file:///etc/passwd" -->',
    'See <!-- sync:fetch url="https://example.com/b" --> here.',
    '<!-- sync:fetch url="https://example.com/c" max_lines="x" -->',
    "<!-- sync:fetch",
    '  url="https://example.com/d" -->',
    'Write `<!-- sync:fetch url="https://example.com" -->` to fetch.',
  ].join("\n");
  const found = lint([source({ id: "a" }, { "context.md": text })]);
  const places = found.map((each) => ["line" in each && each.line, each.severity]);
  expect(new Set(found.map(({ rule }) => rule))).toEqual(new Set(["fetch-marker"]));
  expect(places.sort()).toEqual([
    [2, "error"],
    [3, "error"],
    [4, "error"],
    [5, "warning"],
    [6, "error"],
  ]);
});

test("finds a pack without any text, but accepts a pack with only a list", () => {
  expect(lint([source({ id: "a" }, { "context.md": " \n" })])).toMatchObject([{ rule: "empty-pack", key: ["id"] }]);
  expect(lint([source({ id: "a", changelog: ["New."] }, {})])).toEqual([]);
});

const budgets: readonly PackBudget[] = [
  { adapter: "small", value: 40, unit: "bytes", verbosity: "minimal" },
  { adapter: "large", value: 60, unit: "chars", verbosity: "full" },
];

test("a base pack's core must fit the smallest budget", () => {
  const base = (bytes: number) => source({ id: "a", base: true }, { "context.md": "x".repeat(bytes) });
  expect(lint([base(40)], { budgets })).toEqual([]);
  const found = lint([base(41)], { budgets });
  expect(found).toMatchObject([{ file: "context.md", line: 1, severity: "warning", rule: "oversize" }]);
  expect(found[0]?.message).toContain("has 41 bytes, more than small takes (40)");
});

test("a pack must fit some budget, at that tool's verbosity and in its unit", () => {
  const pack = (core: string, detail: string) =>
    source({ id: "a" }, { "context.md": `${core}\n<!-- verbosity:detail -->\n${detail}` });
  expect(lint([pack("x".repeat(30), "x".repeat(300))], { budgets })).toEqual([]);
  expect(lint([pack("ä".repeat(30), "ä".repeat(29))], { budgets })).toEqual([]);
  expect(lint([pack("ä".repeat(30), "ä".repeat(30))], { budgets })[0]?.message).toContain("the pack has 61 chars");
  expect(lint([pack("ä".repeat(30), "ä".repeat(30))])).toEqual([]);
});

test("reports the first hundred findings of a text, errors first", () => {
  const lines = process.env.PLIMSOLL_DEEP === "1" ? 100_000 : 20_000;
  const text = `${"=\n".repeat(lines)}<!-- sync:fetch -->\n${"a <!-- verbosity:detail -->\n".repeat(lines / 2)}`;
  const found = lint([source({ id: "a" }, { "context.md": text })]);
  expect(found.filter(({ rule }) => rule === "heading-level")).toHaveLength(101);
  expect(found.filter(({ rule }) => rule === "heading-level").at(-1)?.message).toBe(`… and ${lines - 101} more`);
  expect(found.filter(({ severity }) => severity === "error")).toHaveLength(1);
  const { warnings } = mergeLayers([{ layer: "project", sources: [source({ id: "a" }, { "context.md": text })] }], {
    language: "en",
  });
  expect(warnings.length).toBeLessThan(110);
});
