import { expect, test } from "vitest";
import {
  addToFabric,
  addWhatFits,
  emptyFabric,
  type Fabric,
  type FabricReport,
  maxEntries,
  maxEntryLength,
  resolveEntry,
} from "./fabric.ts";

function add(fabric: Fabric, report: FabricReport, from: string, date?: string): Fabric {
  return addToFabric(fabric, report, { from, date }).fabric;
}

test("entries get ids by kind, and who reported them", () => {
  const fabric = add(
    emptyFabric,
    {
      entanglements: [{ package: "parser", kind: "function", signature: "parse()", file: "src/parse.ts" }],
      claims: [{ path: "src/parse.ts" }, { path: " docs/ " }],
      discoveries: [{ detail: "no schema" }, { kind: "conflict", detail: "two names", affects: "page" }],
      notes: [{ text: "ports from 4000" }, { kind: "decision", text: "ISO dates" }],
    },
    "parser",
    "2026-11-15",
  );
  expect(fabric).toEqual({
    entanglements: [
      {
        id: "e1",
        package: "parser",
        kind: "function",
        signature: "parse()",
        file: "src/parse.ts",
        from: "parser",
      },
    ],
    claims: [
      { id: "c1", path: "src/parse.ts", owner: "parser" },
      { id: "c2", path: "docs/", owner: "parser" },
    ],
    discoveries: [
      { id: "d1", kind: "blocker", detail: "no schema", from: "parser", date: "2026-11-15", resolved: false },
      {
        id: "d2",
        kind: "conflict",
        detail: "two names",
        from: "parser",
        affects: "page",
        date: "2026-11-15",
        resolved: false,
      },
    ],
    notes: [
      { id: "n1", kind: "note", text: "ports from 4000", from: "parser" },
      { id: "n2", kind: "decision", text: "ISO dates", from: "parser" },
    ],
    lastIds: { entanglements: 1, claims: 2, discoveries: 2, notes: 2 },
  });
});

test("the same entry of one reporter is added once, and again for another reporter", () => {
  const report = {
    claims: [{ path: "a" }, { path: "a" }],
    discoveries: [{ detail: "no schema" }],
    notes: [{ text: "x" }],
  };
  const once = add(emptyFabric, report, "one", "2026-11-15");
  // Also on another day, and when it was stored and read in between.
  expect(add(once, report, "one", "2026-11-16")).toBe(once);
  const stored = JSON.parse(JSON.stringify(once)) as typeof once;
  expect(add(stored, report, "one", "2026-11-16")).toBe(stored);
  const twice = add(once, report, "two");
  expect(twice.claims.map(({ id, owner }) => [id, owner])).toEqual([
    ["c1", "one"],
    ["c2", "two"],
  ]);
  expect(add(twice, {}, "two")).toBe(twice);
});

test("the ids of a report come in its order, also for entries that existed", () => {
  const before = add(emptyFabric, { notes: [{ text: "a" }, { text: "b" }] }, "one");
  const report = { claims: [{ path: "x" }], notes: [{ text: "new" }, { text: " b " }, { text: "new" }] };
  const { fabric, ids } = addToFabric(before, report, { from: "one" });
  expect(ids).toEqual({ entanglements: [], claims: ["c1"], discoveries: [], notes: ["n3", "n2", "n3"] });
  expect(addToFabric(fabric, report, { from: "one" })).toEqual({ fabric, ids });
});

test("an id is never reused after its entry was removed", () => {
  const fabric = add(emptyFabric, { notes: [{ text: "a" }, { text: "b" }] }, "one");
  const next = add({ ...fabric, notes: [] }, { notes: [{ text: "a" }] }, "one");
  expect(next.notes.map(({ id }) => id)).toEqual(["n3"]);
});

test("a discovery is resolved once, and reported again it is a new one", () => {
  const report = { discoveries: [{ detail: "no schema" }] };
  const fabric = add(emptyFabric, report, "one");
  const resolved = resolveEntry(fabric, "d1");
  expect(resolved.discoveries).toMatchObject([{ id: "d1", resolved: true }]);
  expect(fabric.discoveries).toMatchObject([{ id: "d1", resolved: false }]);
  expect(resolveEntry(resolved, "d1")).toBe(resolved);
  expect(add(resolved, report, "one").discoveries).toMatchObject([
    { id: "d1", resolved: true },
    { id: "d2", resolved: false },
  ]);
});

test("any other entry is removed, and its id is not reused", () => {
  const fabric = add(
    emptyFabric,
    {
      entanglements: [{ package: "p", kind: "function", signature: "f()" }],
      claims: [{ path: "a" }, { path: "b" }],
      notes: [{ text: "x" }],
    },
    "one",
  );
  const kept = resolveEntry(resolveEntry(resolveEntry(fabric, "c1"), "e1"), "n1");
  expect(kept).toEqual({ ...emptyFabric, claims: [fabric.claims[1]], lastIds: fabric.lastIds });
  expect(add(kept, { claims: [{ path: "a" }] }, "one").claims.map(({ id }) => id)).toEqual(["c2", "c3"]);
});

test("an unknown entry is an error that lists the known ones", () => {
  const report = { claims: [{ path: "x" }], discoveries: [{ detail: "a" }, { detail: "b" }] };
  const fabric = add(emptyFabric, report, "one");
  const refusal = (id: string, from = fabric) => {
    try {
      return resolveEntry(from, id);
    } catch (error) {
      const { code, message, hint } = error as { code: string; message: string; hint: string };
      return `${code}: ${message}. ${hint}`;
    }
  };
  expect(refusal("d3")).toBe('invalid_argument: the fabric has no entry "d3". It has d1, d2, c1.');
  expect(refusal("d2", resolveEntry(fabric, "d1"))).toMatchObject({ discoveries: [{}, { resolved: true }] });
  expect(refusal("", resolveEntry(fabric, "d1"))).toBe('invalid_argument: the fabric has no entry "". It has d2, c1.');
  expect(refusal("d1", emptyFabric)).toBe('invalid_argument: the fabric has no entry "d1". It has no entries.');
});

test("if a kind is full, what fits of it is added, and all entries of other kinds", () => {
  const notes = Array.from({ length: maxEntries - 1 }, (_, index) => ({ text: `${index}` }));
  const before = add(emptyFabric, { notes }, "one");
  const report = {
    claims: [{ path: "a" }],
    notes: [{ text: "7" }, { text: "new" }, { text: "too much" }, { text: "too much" }],
  };
  const { fabric, ids, omitted } = addWhatFits(before, report, { from: "one" });
  expect(ids).toMatchObject({ claims: ["c1"], notes: ["n8", `n${maxEntries}`] });
  expect(omitted).toEqual({ entanglements: 0, claims: 0, discoveries: 0, notes: 1 });
  expect(fabric.claims).toHaveLength(1);
  expect(fabric.notes).toHaveLength(maxEntries);
  expect(fabric.notes.at(-1)).toMatchObject({ id: `n${maxEntries}`, text: "new" });
  expect(addWhatFits(fabric, report, { from: "one" }).fabric).toBe(fabric);
});

test("empty texts and texts above the limits are refused, and nothing is added", () => {
  const refused = (report: FabricReport, from = "one", fabric = emptyFabric) => {
    try {
      return add(fabric, report, from);
    } catch (error) {
      return (error as Error).message;
    }
  };
  const long = "x".repeat(maxEntryLength);
  expect(add(emptyFabric, { notes: [{ text: long }] }, "one").notes).toHaveLength(1);
  expect(refused({ notes: [{ text: `${long}x` }] })).toBe("the text has 2001 characters, but at most 2000 are allowed");
  expect(refused({ claims: [{ path: "a" }, { path: " \n" }] })).toBe("the path is empty");
  expect(refused({ claims: [{ path: "a" }] }, "")).toBe("the owner is empty");
  const paths = Array.from({ length: maxEntries }, (_, index) => ({ path: `src/${index}` }));
  const full = add(emptyFabric, { claims: paths }, "one");
  expect(full.claims).toHaveLength(maxEntries);
  expect(refused({ claims: [{ path: "b" }] }, "one", full)).toBe(
    "the fabric would have 10001 claims, but at most 10000 are allowed",
  );
  expect(refused({ claims: [{ path: "src/7" }] }, "one", full)).toBe(full);
});

test("the same entanglement from two phases is one, also if one of them names no file", () => {
  const entanglement = { package: "api", kind: "function", signature: "get(id)", file: "src/api.ts" };
  const { file: _, ...unplaced } = entanglement;
  const first = add(emptyFabric, { entanglements: [entanglement] }, "one");
  expect(add(first, { entanglements: [entanglement, unplaced] }, "two")).toBe(first);
  const bare = add(emptyFabric, { entanglements: [unplaced] }, "one");
  expect(add(bare, { entanglements: [entanglement] }, "two").entanglements).toHaveLength(1);
  const other = { ...entanglement, file: "src/other.ts" };
  expect(add(first, { entanglements: [other] }, "two").entanglements).toHaveLength(2);
});

test("a report resolves discoveries, but nothing else, and may name several affected phases", () => {
  const affects = ["page", "docs"];
  const before = add(emptyFabric, { discoveries: [{ detail: "no schema", affects }], notes: [{ text: "a" }] }, "one");
  expect(before.discoveries[0]?.affects).toBe("page, docs");
  const after = add(before, { resolved: ["d1", "n1", "d9"] }, "two");
  expect(after.discoveries).toMatchObject([{ id: "d1", resolved: true }]);
  expect(after.notes).toHaveLength(1);
  expect(add(after, { resolved: ["d1"] }, "two")).toBe(after);
});
