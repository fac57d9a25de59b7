import { expect, test } from "vitest";
import { parseSegments, type Segment, type Tier, textAt } from "../../core/text/index.ts";
import { mergeLayers, mergeSegments, type PackLayer } from "./merge-packs.ts";
import { orderPacks, type Pack, type PackSource } from "./pack.ts";
import { createPackSource, type PackFile, type PackFolder } from "./read-pack.ts";

function source(pack: PackFile, folder: Partial<PackFolder> = {}): PackSource {
  return createPackSource({ texts: {}, directory: `packs/${pack.id}`, ...folder, pack });
}

function merge(...layers: PackLayer[]) {
  return mergeLayers(layers, { language: "en" });
}

const base = source(
  {
    id: "base",
    name: "Base",
    description: "From below",
    tags: ["a", "b"],
    weight: 7,
    base: true,
    overlaps: ["x"],
    versions: { node: "20", npm: "10" },
    changelog: ["old"],
  },
  {
    texts: {
      "context.md": "A\n<!-- verbosity:detail -->\nB\n",
      "constraints.md": "No A.\n",
      "preamble.md": "> A\n",
    },
    samples: [
      { id: "s1", label: "first", inject: true },
      { id: "s2", label: "second" },
    ],
    knownErrors: [{ id: "e1", pattern: "boom" }],
    learning: { journeys: [{ slug: "l1", title: "One" }] },
  },
);

const addition = source(
  {
    id: "base",
    additive: true,
    tags: ["b", "c"],
    overlaps: ["y"],
    versions: { npm: "11" },
    changelog: ["new"],
  },
  {
    texts: {
      "context.md": "X\n<!-- verbosity:detail -->\nY\n",
      "constraints.md": "No X.\n",
      "preamble.md": "> X\n",
    },
    samples: [
      { id: "s2", label: "changed" },
      { id: "s3", label: "third" },
    ],
    knownErrors: [{ pattern: "bang" }],
    learning: { journeys: [{ slug: "l1", title: "Uno" }] },
  },
);

test("a later layer's pack replaces the earlier one as a whole", () => {
  const over = source({ id: "base", name: "Mine" }, { texts: { "context.md": "mine\n" } });
  const [pack] = merge({ layer: "embedded", sources: [base] }, { layer: "project", sources: [over] }).packs;
  expect(pack).toMatchObject({
    name: "Mine",
    layer: "project",
    weight: 0,
    base: false,
    tags: [],
    preamble: "",
  });
  expect(textAt(pack!.context, "full")).toBe("mine\n");
});

test("an additive pack adds to the pack below and keeps everything of both", () => {
  const [pack] = merge({ layer: "embedded", sources: [base] }, { layer: "company", sources: [addition] }).packs;
  expect(pack).toMatchObject({
    name: "Base",
    description: "From below",
    tags: ["a", "b", "c"],
    weight: 7,
    base: true,
    overlaps: ["x", "y"],
    versions: { node: "20", npm: "11" },
    changelog: ["new", "old"],
    layer: "company",
    preamble: "> A\n\n> X",
  });
  expect(textAt(pack!.context, "full")).toBe("A\n\nX\nB\n\nY\n");
  expect(textAt(pack!.constraints, "full")).toBe("No A.\n\nNo X.\n");
});

test("an entry with a known id replaces the old one, and a new entry goes to the end", () => {
  const [pack] = merge({ layer: "embedded", sources: [base] }, { layer: "company", sources: [addition] }).packs;
  expect(pack!.samples.map(({ label }) => label)).toEqual(["first", "changed", "third"]);
  expect(pack!.knownErrors.map(({ pattern }) => pattern)).toEqual(["boom", "bang"]);
  expect(pack!.learning.map(({ title }) => title)).toEqual(["Uno"]);
});

test("the position before puts the added text first", () => {
  const before = { ...addition, additivePosition: "before" as const };
  const [pack] = merge({ layer: "embedded", sources: [base] }, { layer: "company", sources: [before] }).packs;
  expect(textAt(pack!.context, "full")).toBe("X\n\nA\nY\n\nB\n");
  expect(pack!.preamble).toBe("> X\n\n> A");
});

test("an addition's name, description, weight and base flag count if it sets them", () => {
  const renamed = source({ id: "a", additive: true, name: "N", description: "D", weight: 3, base: true });
  const [pack] = merge(
    { layer: "embedded", sources: [source({ id: "a", name: "old", weight: 9 })] },
    { layer: "user", sources: [renamed] },
  ).packs;
  expect(pack).toMatchObject({ name: "N", description: "D", weight: 3, base: true });
});

test("an addition without a pack below is the pack itself, and three layers add up", () => {
  const add = (text: string) => source({ id: "a", additive: true }, { texts: { "context.md": text } });
  const { packs } = merge(
    { layer: "company", sources: [add("one\n")] },
    { layer: "user", sources: [add("two\n")] },
    { layer: "project", sources: [add("three\n")] },
  );
  expect(packs.map(({ context }) => textAt(context, "full"))).toEqual(["one\n\ntwo\n\nthree\n"]);
});

test("a pack without a name is named after its id", () => {
  expect(merge({ layer: "embedded", sources: [source({ id: "a" })] }).packs[0]?.name).toBe("a");
});

test("packs are sorted by id, whatever their order in a layer", () => {
  const sources = ["c", "a", "b"].map((id) => source({ id }));
  expect(merge({ layer: "embedded", sources }).packs.map(({ id }) => id)).toEqual(["a", "b", "c"]);
});

test("warnings name the pack and the file", () => {
  const odd = source({ id: "odd" }, { texts: { "constraints.md": "a\n<!-- verbosity:detial -->\nb\n" } });
  const [warning] = merge({ layer: "embedded", sources: [odd] }).warnings;
  expect(warning).toMatchObject({ pack: "odd", directory: "packs/odd", file: "constraints.md", line: 2 });
  expect(warning?.message).toContain('Did you mean "detail"?');
});

const a = segment("core", "A\n");
const b = segment("detail", "B\n");
const c = segment("core", "C\n");
const x = segment("core", "X\n");
const y = segment("detail", "Y\n");

function segment(tier: Tier, text: string): Segment {
  return { tier, text };
}

/** Tiers and trimmed texts, such as "core A". */
function shape(segments: readonly Segment[]): string[] {
  return segments.map(({ tier, text }) => `${tier} ${text.trim()}`);
}

test("each tier goes after the last segment of its tier", () => {
  const merged = mergeSegments([a, b, c], [x, y], "after");
  expect(shape(merged)).toEqual(["core A", "detail B", "detail Y", "core C", "core X"]);
  expect(textAt(merged, "full")).toBe("A\nB\n\nY\nC\n\nX\n");
  expect(textAt(merged, "minimal")).toBe("A\nC\n\nX\n");
});

test("each tier goes before the first segment of its tier", () => {
  const merged = mergeSegments([a, b, c], [x, y], "before");
  expect(shape(merged)).toEqual(["core X", "core A", "detail Y", "detail B", "core C"]);
  expect(textAt(merged, "full")).toBe("X\n\nA\nY\n\nB\nC\n");
  expect(textAt(merged, "minimal")).toBe("X\n\nA\nC\n");
});

test("puts one blank line between the texts, whatever they start and end with", () => {
  for (const end of ["", "\n", "\n\n", "\n\n\n"]) {
    for (const start of ["", "\n", "\n \n"]) {
      const after = mergeSegments([segment("core", `A${end}`)], [segment("core", `${start}X`)], "after");
      expect(textAt(after, "full").trimEnd()).toBe("A\n\nX");
      const before = mergeSegments([segment("core", `${start}A`)], [segment("core", `X${end}`)], "before");
      expect(textAt(before, "full").trim()).toBe("X\n\nA");
    }
  }
});

test("the distance to the next segment does not change", () => {
  const merged = mergeSegments([segment("detail", "B\n\n"), c], [y], "after");
  expect(textAt(merged, "full")).toBe("B\n\nY\n\nC\n");
});

test("a tier that the base lacks goes to its end or its start, in the addition's own order", () => {
  expect(textAt(mergeSegments([segment("core", "A")], [y, x], "after"), "full")).toBe("A\n\nX\n\nY\n");
  expect(textAt(mergeSegments([segment("core", "A")], [x, y], "before"), "full")).toBe("X\n\nY\n\nA");
});

test("if one side is empty, the other is used unchanged", () => {
  expect(mergeSegments([], [x, y], "after")).toEqual([x, y]);
  expect(mergeSegments([segment("core", "\n")], [x], "before")).toEqual([x]);
  const base = [a, b];
  expect(mergeSegments(base, [], "after")).toBe(base);
  expect(mergeSegments(base, [segment("detail", " \n")], "after")).toBe(base);
});

test("the parts of one tier of an addition keep their order", () => {
  const added = parseSegments("X1\n<!-- verbosity:detail -->\nY\n<!-- verbosity:core -->\nX2\n").segments;
  expect(textAt(mergeSegments([a, b], added, "after"), "full")).toBe("A\n\nX1\nX2\nB\n\nY\n");
});

test("an indented first line keeps its spaces", () => {
  expect(textAt(mergeSegments([a], [segment("core", "\n    code\n")], "after"), "full")).toBe("A\n\n    code\n");
});

function pack(id: string, weight: number, base = false): Pack {
  return {
    ...{ id, weight, base, name: id, description: "", tags: [], overlaps: [], detect: [], versions: {}, changelog: [] },
    ...{ layer: "embedded", preamble: "", context: [], constraints: [] },
    ...{ samples: [], knownErrors: [], learning: [], globs: [], nested: false, skills: [] },
  };
}

const packs = [
  pack("b", 5),
  pack("late", 0, true),
  pack("a", 5),
  pack("Z", 5),
  pack("heavy", 90),
  pack("base", 1, true),
];

function ids(profile?: Parameters<typeof orderPacks>[1]): string[] {
  return orderPacks(packs, profile).map(({ id }) => id);
}

test("base packs come first, then weight descending, then id by code unit", () => {
  expect(ids()).toEqual(["base", "late", "heavy", "Z", "a", "b"]);
});

test("the order of the input does not matter, and the input is not changed", () => {
  const given = [...packs].reverse();
  expect(orderPacks(given).map(({ id }) => id)).toEqual(ids());
  expect(given).toEqual([...packs].reverse());
});

test("a profile changes the weights of its packs and leaves none out", () => {
  const listed = [
    { id: "b", weight: 100 },
    { id: "heavy", weight: 1 },
    { id: "unknown", weight: 7 },
  ];
  expect(ids({ id: "p", name: "", description: "", packs: listed })).toEqual(["base", "late", "b", "Z", "a", "heavy"]);
});

test("a weight of 0 or none in a profile means the pack's own weight", () => {
  const listed = [{ id: "heavy", weight: 0 }, { id: "a" }];
  expect(ids({ id: "p", name: "", description: "", packs: listed })).toEqual(ids());
});
