import { expect, test } from "vitest";
import type { Pack } from "./pack.ts";
import { trimPacks } from "./trim-packs.ts";

interface Given {
  readonly id: string;
  readonly bytes?: number;
  readonly context?: string;
  readonly constraints?: string;
  readonly overlaps?: readonly string[];
  readonly base?: boolean;
}

function pack({
  id,
  bytes = 10,
  context = "x".repeat(bytes),
  constraints = "",
  overlaps = [],
  base = false,
}: Given): Pack {
  return {
    ...{ id, overlaps, base, name: id, description: "", tags: [], detect: [], weight: 0, versions: {}, changelog: [] },
    ...{ layer: "embedded", preamble: "", samples: [], knownErrors: [], learning: [] },
    ...{ globs: [], nested: false, skills: [] },
    context: context === "" ? [] : [{ tier: "core", text: context }],
    constraints: constraints === "" ? [] : [{ tier: "core", text: constraints }],
  };
}

function kept(given: readonly Given[], maxBytes: number): string[] {
  return trimPacks(given.map(pack), maxBytes, "full").packs.map(({ id }) => id);
}

test.each<[string, readonly Given[], number, string[]]>([
  ["no budget keeps all", [{ id: "cap" }, { id: "btp-core" }], 0, ["cap", "btp-core"]],
  ["nothing stays nothing", [], 0, []],
  ["an overlap goes without a budget too", [{ id: "cap" }, { id: "btp-core", overlaps: ["cap"] }], 0, ["cap"]],
  ["an overlap with what is not there stays", [{ id: "btp-core", overlaps: ["cap"] }], 0, ["btp-core"]],
  [
    "stops at the first pack that does not fit",
    [
      { id: "cap", bytes: 14 },
      { id: "btp", bytes: 5 },
    ],
    10,
    [],
  ],
  [
    "no smaller pack slips in",
    [
      { id: "cap", bytes: 12 },
      { id: "big", bytes: 28 },
      { id: "abap", bytes: 5 },
    ],
    20,
    ["cap"],
  ],
  [
    "an empty pack always fits",
    [
      { id: "meta", bytes: 0 },
      { id: "cap", bytes: 17 },
    ],
    5,
    ["meta"],
  ],
  [
    "overlaps first, then the budget",
    [
      { id: "cap", bytes: 16 },
      { id: "btp", overlaps: ["cap"] },
      { id: "abap", bytes: 12 },
    ],
    100,
    ["cap", "abap"],
  ],
  [
    "a base pack is exempt",
    [
      { id: "base", bytes: 20, base: true },
      { id: "cap", bytes: 11 },
    ],
    5,
    ["base"],
  ],
  [
    "a base pack subsumes nothing",
    [
      { id: "base", base: true },
      { id: "cap", overlaps: ["base"] },
    ],
    0,
    ["base", "cap"],
  ],
  ["base packs go first", [{ id: "cap" }, { id: "base", base: true }, { id: "abap" }], 0, ["base", "cap", "abap"]],
  [
    "stops at the first pack that does not fit after a base pack, too",
    [
      { id: "base", bytes: 17, base: true },
      { id: "big", bytes: 32 },
      { id: "small", bytes: 2 },
    ],
    10,
    ["base"],
  ],
  [
    "every base pack is exempt",
    [
      { id: "one", bytes: 20, base: true },
      { id: "two", bytes: 20, base: true },
    ],
    5,
    ["one", "two"],
  ],
  ["constraints count", [{ id: "a", context: "hello", constraints: "constraint" }], 10, []],
  ["an exact fit fits", [{ id: "a", context: "hello", constraints: "world" }], 10, ["a"]],
  [
    "500 tokens are 2000 bytes",
    [
      { id: "a", bytes: 1000 },
      { id: "b", bytes: 1000 },
    ],
    500 * 4,
    ["a", "b"],
  ],
  ["one token holds no pack", [{ id: "a", bytes: 1000 }], 4, []],
  ["less than nothing is no budget", [{ id: "a", bytes: 1000 }], -1, ["a"]],
  [
    "the budget of a base pack is not the others'",
    [{ id: "base", bytes: 90, base: true }, { id: "a" }],
    10,
    ["base", "a"],
  ],
  [
    "of two that name each other the earlier stays",
    [
      { id: "a", overlaps: ["b"] },
      { id: "b", overlaps: ["a"] },
    ],
    0,
    ["a"],
  ],
  [
    "what was dropped subsumes nothing",
    [{ id: "a" }, { id: "b", overlaps: ["a"] }, { id: "c", overlaps: ["b"] }],
    0,
    ["a", "c"],
  ],
  ["a pack that names itself stays", [{ id: "a", overlaps: ["a"] }], 0, ["a"]],
])("%s", (_, given, maxBytes, expected) => {
  expect(kept(given, maxBytes)).toEqual(expected);
});

test("every dropped pack has a reason, and an overlap names the pack that includes it", () => {
  const given = [{ id: "a" }, { id: "b", overlaps: ["x", "a"] }, { id: "c", bytes: 50 }, { id: "d", bytes: 1 }];
  expect(trimPacks(given.map(pack), 20, "full").dropped).toEqual([
    { id: "b", reason: "overlap", by: "a" },
    { id: "c", reason: "budget" },
    { id: "d", reason: "budget" },
  ]);
});

test("an included pack is dropped even if the including pack is cut by the budget", () => {
  const given = [
    { id: "a", bytes: 30 },
    { id: "b", bytes: 1, overlaps: ["a"] },
  ];
  expect(kept(given, 10)).toEqual([]);
});

test("counts only the bytes of the shown tiers, and bytes are not characters", () => {
  const thick: Pack = {
    ...pack({ id: "a" }),
    context: [
      { tier: "core", text: "café" },
      { tier: "extended", text: "x".repeat(100) },
    ],
  };
  expect(trimPacks([thick], 5, "minimal").packs).toEqual([thick]);
  expect(trimPacks([thick], 4, "minimal").packs).toEqual([]);
  expect(trimPacks([thick], 5, "full").packs).toEqual([]);
});
