import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isSameJson, isUnchanged, takeSnapshot } from "./snapshot.ts";

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 20_000 : 1000;

describe("a snapshot", () => {
  it("fits exactly the values that JSON writes like the one it was taken of", () => {
    const check = (left: unknown, right: unknown) => {
      expect(isUnchanged(structuredClone(left), takeSnapshot(left))).toBe(true);
      expect(isUnchanged(right, takeSnapshot(left))).toBe(JSON.stringify(left) === JSON.stringify(right));
    };
    // Few letters and numbers, so that values are often alike.
    const value = fc.letrec((tie) => ({
      any: fc.oneof({ maxDepth: 3 }, fc.constantFrom("a", "b", 0, 1, null), tie("list"), tie("fields")),
      list: fc.array(tie("any"), { maxLength: 2 }),
      fields: fc.dictionary(fc.constantFrom("a", "b"), tie("any"), { maxKeys: 2, noNullPrototype: true }),
    })).any;
    fc.assert(fc.property(value, value, check), { numRuns });
  });

  it.each([
    ["a longer value", { a: { b: ["x", "y"] } }],
    ["a shorter one", { a: { b: [] } }],
    ["another name", { a: { c: ["x"] } }],
    ["a list for an object", { a: [["x"]] }],
    ["a further field", { a: { b: ["x"] }, c: 1 }],
    ["another value of the same length", { a: { b: ["y"] } }],
  ])("does not fit %s", (_, changed) => {
    expect(isUnchanged(changed, takeSnapshot({ a: { b: ["x"] } }))).toBe(false);
  });

  it("knows bytes by their identity", () => {
    const image = new Uint8Array(4_000_000);
    const message = { role: "user", content: [{ type: "image", image }] };
    const snapshot = takeSnapshot(message);
    expect(snapshot.length).toBeLessThan(20);
    expect(isUnchanged(message, snapshot)).toBe(true);
    expect(isUnchanged({ role: "user", content: [{ type: "image", image: image.slice() }] }, snapshot)).toBe(
      false,
    );
  });

  it("knows what lies very deep by its identity, and ends at cycles", () => {
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    expect(isUnchanged(cyclic, takeSnapshot(cyclic))).toBe(true);
    expect(isUnchanged({ ...cyclic }, takeSnapshot(cyclic))).toBe(true);
    const nest = () => JSON.parse(`${"[".repeat(100)}${"]".repeat(100)}`) as unknown;
    const nested = nest();
    expect(isUnchanged(nested, takeSnapshot(nested))).toBe(true);
    expect(isUnchanged(nest(), takeSnapshot(nested))).toBe(false);
    expect(isSameJson(nest(), nest())).toBe(false);
  });
});

describe("isSameJson", () => {
  it("says yes only where JSON writes the same", () => {
    const plain = fc.dictionary(
      fc.constantFrom("a", "b"),
      fc.constantFrom<unknown>("x", 0, 1, null, [], ["x"], {}),
    );
    const odd = fc.constantFrom<unknown>(
      undefined,
      Number.NaN,
      -0,
      new Date(0),
      Object("x"),
      () => 1,
      Array(2),
    );
    const value = fc.dictionary(
      fc.constantFrom("a", "b"),
      fc.oneof(fc.constantFrom<unknown>("x", 0, null), odd),
    );
    const check = (left: unknown, right: unknown) => {
      const parsed = JSON.parse(JSON.stringify(left));
      if (isSameJson(parsed, right)) expect(JSON.stringify(right)).toBe(JSON.stringify(left));
    };
    fc.assert(fc.property(plain, fc.oneof(plain, value), check), { numRuns });
  });

  it("says yes to a copy", () => {
    const check = (json: string) => {
      expect(isSameJson(JSON.parse(json), JSON.parse(json))).toBe(true);
    };
    fc.assert(fc.property(fc.json({ maxDepth: 5 }), check), { numRuns });
  });
});
