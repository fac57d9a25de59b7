import { expect, test } from "vitest";
import { orderPacks } from "./order-packs.ts";
import type { Pack } from "./pack.ts";
import { builtInProfiles } from "./profile.ts";

function pack(id: string, weight: number, base = false): Pack {
  return {
    ...{ id, weight, base, name: id, description: "", tags: [], overlaps: [], versions: {}, changelog: [] },
    ...{ layer: "embedded", preamble: "", context: [], constraints: [] },
    ...{ samples: [], knownErrors: [], learning: [] },
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

test("the order of the input does not matter and the input stays as it is", () => {
  const given = [...packs].reverse();
  expect(orderPacks(given).map(({ id }) => id)).toEqual(ids());
  expect(given).toEqual([...packs].reverse());
});

test("a profile re-weights the packs it lists and leaves none out", () => {
  const listed = [
    { id: "b", weight: 100 },
    { id: "heavy", weight: 1 },
    { id: "unknown", weight: 7 },
  ];
  expect(ids({ id: "p", name: "", description: "", packs: listed })).toEqual([
    "base",
    "late",
    "b",
    "Z",
    "a",
    "heavy",
  ]);
});

test("a weight of 0 or none in a profile is the pack's own weight", () => {
  const listed = [{ id: "heavy", weight: 0 }, { id: "a" }];
  expect(ids({ id: "p", name: "", description: "", packs: listed })).toEqual(ids());
});

test("the built-in profiles are all packs and base packs only", () => {
  const [all, minimal] = builtInProfiles;
  expect(ids(all)).toEqual(ids());
  expect(ids(minimal)).toEqual(["base", "late"]);
});
