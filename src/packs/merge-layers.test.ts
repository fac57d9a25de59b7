import { expect, test } from "vitest";
import { textAt } from "../text/index.ts";
import { mergeLayers, type PackLayer } from "./merge-layers.ts";
import type { PackSource } from "./pack.ts";
import { createPackSource, type PackFile, type PackFolder } from "./read/pack-file.ts";

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

test("an additive pack adds to what is below and nothing of either is lost", () => {
  const [pack] = merge(
    { layer: "embedded", sources: [base] },
    { layer: "company", sources: [addition] },
  ).packs;
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

test("an entry of the same id takes the old one's place, a new one goes to the end", () => {
  const [pack] = merge(
    { layer: "embedded", sources: [base] },
    { layer: "company", sources: [addition] },
  ).packs;
  expect(pack!.samples.map(({ label }) => label)).toEqual(["first", "changed", "third"]);
  expect(pack!.knownErrors.map(({ pattern }) => pattern)).toEqual(["boom", "bang"]);
  expect(pack!.learning.map(({ title }) => title)).toEqual(["Uno"]);
});

test("the position before turns the order of the texts around", () => {
  const before = { ...addition, additivePosition: "before" as const };
  const [pack] = merge({ layer: "embedded", sources: [base] }, { layer: "company", sources: [before] }).packs;
  expect(textAt(pack!.context, "full")).toBe("X\n\nA\nY\n\nB\n");
  expect(pack!.preamble).toBe("> X\n\n> A");
});

test("name, description, weight and the base flag of an addition count when it has them", () => {
  const renamed = source({ id: "a", additive: true, name: "N", description: "D", weight: 3, base: true });
  const [pack] = merge(
    { layer: "embedded", sources: [source({ id: "a", name: "old", weight: 9 })] },
    { layer: "user", sources: [renamed] },
  ).packs;
  expect(pack).toMatchObject({ name: "N", description: "D", weight: 3, base: true });
});

test("an addition without anything below is the pack, and three layers add up", () => {
  const add = (text: string) => source({ id: "a", additive: true }, { texts: { "context.md": text } });
  const { packs } = merge(
    { layer: "company", sources: [add("one\n")] },
    { layer: "user", sources: [add("two\n")] },
    { layer: "project", sources: [add("three\n")] },
  );
  expect(packs.map(({ context }) => textAt(context, "full"))).toEqual(["one\n\ntwo\n\nthree\n"]);
});

test("a pack without a name is called by its id", () => {
  expect(merge({ layer: "embedded", sources: [source({ id: "a" })] }).packs[0]?.name).toBe("a");
});

test("packs come out by id, whatever the order in their layer", () => {
  const sources = ["c", "a", "b"].map((id) => source({ id }));
  expect(merge({ layer: "embedded", sources }).packs.map(({ id }) => id)).toEqual(["a", "b", "c"]);
});

test("warnings say which pack and file", () => {
  const odd = source({ id: "odd" }, { texts: { "constraints.md": "a\n<!-- verbosity:detial -->\nb\n" } });
  const [warning] = merge({ layer: "embedded", sources: [odd] }).warnings;
  expect(warning).toMatchObject({ pack: "odd", directory: "packs/odd", file: "constraints.md", line: 2 });
  expect(warning?.message).toContain('Did you mean "detail"?');
});
