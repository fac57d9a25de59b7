import fc from "fast-check";
import { expect, test } from "vitest";
import { createReach, type DependencyGraph, groupWaves, type Phase, walkDependencies } from "./nebula.ts";

function phase(id: string, dependsOn: string = "", priority = 2): Phase {
  const rest = { scope: [], gate: "trust" as const, labels: [] };
  return { id, title: id, file: `${id}.md`, body: "", dependsOn: [...dependsOn], priority, ...rest };
}

const idsOf = (phases: readonly Phase[]) => groupWaves(phases).map((wave) => wave.map(({ id }) => id).join(""));

test("a phase is in the first wave after its dependencies", () => {
  expect(idsOf([phase("d", "bc"), phase("c", "a"), phase("b"), phase("a"), phase("e", "a")])).toEqual([
    "ab",
    "ce",
    "d",
  ]);
});

test("in a wave the smaller priority comes first, then the id", () => {
  expect(idsOf([phase("b"), phase("c", "", 1), phase("a", "", 3), phase("A")])).toEqual(["cAba"]);
});

test("without phases there are no waves, and each phase of a chain is a wave", () => {
  expect(groupWaves([])).toEqual([]);
  const chain = Array.from({ length: 5_000 }, (_, index) => ({
    ...phase(`p${index}`),
    dependsOn: index === 0 ? [] : [`p${index - 1}`],
  }));
  expect(groupWaves(chain)).toHaveLength(5_000);
});

const graphOf = (edges: Readonly<Record<string, string>>): DependencyGraph =>
  new Map(Object.entries(edges).map(([id, on]) => [id, [...on]]));

test("dependencies come first, and without circles none is found", () => {
  expect(walkDependencies(graphOf({ a: "bc", b: "d", c: "d", d: "" }))).toEqual({
    cycles: [],
    moreCycles: 0,
    order: ["d", "b", "c", "a"],
  });
});

test("cycles that share phases are reported once for each dependency that closes one", () => {
  expect(walkDependencies(graphOf({ a: "b", b: "ac", c: "ab" })).cycles).toEqual([
    ["a", "b"],
    ["a", "b", "c"],
    ["b", "c"],
  ]);
});

test("a chain that is longer than the stack is deep, and one closed to a circle", () => {
  const ids = Array.from({ length: 50_000 }, (_, index) => `p${String(index).padStart(5, "0")}`);
  const chain = new Map(ids.map((id, index) => [id, ids.slice(index + 1, index + 2)]));
  expect(walkDependencies(chain)).toMatchObject({ cycles: [], order: { length: 50_000 } });
  chain.set(ids.at(-1)!, [ids[0]!]);
  expect(walkDependencies(chain).cycles).toEqual([ids]);
});

test("of very many circles only some are listed, the rest is counted", () => {
  const ids = Array.from({ length: 60 }, (_, index) => String(index).padStart(2, "0"));
  const { cycles, moreCycles } = walkDependencies(new Map(ids.map((id) => [id, ids.filter((other) => other !== id)])));
  expect([cycles.length, moreCycles]).toEqual([20, (60 * 59) / 2 - 20]);
});

const graph = fc
  .array(fc.array(fc.nat(7), { maxLength: 3 }), { minLength: 8, maxLength: 8 })
  .map(
    (edges) =>
      new Map(edges.map((on, index) => [String(index), [...new Set(on)].filter((to) => to !== index).map(String)])),
  );

test("cycles are found if and only if they exist, and reach equals following dependencies", () => {
  fc.assert(
    fc.property(graph, (edges) => {
      const { cycles, order } = walkDependencies(edges);
      for (const cycle of cycles) {
        for (const [index, id] of cycle.entries()) expect(edges.get(id)).toContain(cycle[(index + 1) % cycle.length]);
      }
      const below = new Map([...edges.keys()].map((id) => [id, follow(edges, id)]));
      expect(cycles.length > 0).toBe([...below].some(([id, ids]) => ids.has(id)));
      const connected = createReach(edges, order);
      for (const one of order) {
        for (const two of order) expect(connected(one, two)).toBe(below.get(one)!.has(two) || below.get(two)!.has(one));
      }
    }),
    { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 5_000 : 200 },
  );
});

function follow(edges: DependencyGraph, from: string): Set<string> {
  const found = new Set<string>();
  const pending = [from];
  for (let id = pending.pop(); id !== undefined; id = pending.pop()) {
    for (const on of edges.get(id) ?? []) {
      if (!found.has(on)) pending.push(on);
      found.add(on);
    }
  }
  return found;
}
