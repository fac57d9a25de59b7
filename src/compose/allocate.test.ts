import fc from "fast-check";
import { expect, test } from "vitest";
import { allocate, type Demand } from "./allocate.ts";

const demands = (needs: readonly number[], least = 0): Demand[] =>
  [0.4, 0.4, 0.2].map((share, index) => ({ need: needs[index]!, least: index === 1 ? least : 0, share }));

test("a layer gets its share, and what the layers before it do not need", () => {
  expect(allocate(1000, demands([900, 900, 900]))).toEqual([400, 400, 200]);
  expect(allocate(1000, demands([100, 900, 900]))).toEqual([100, 700, 200]);
  expect(allocate(1000, demands([100, 200, 900]))).toEqual([100, 200, 700]);
  expect(allocate(1000, demands([0, 0, 900]))).toEqual([0, 0, 900]);
  expect(allocate(1000, demands([Number.POSITIVE_INFINITY, 100, 50]))).toEqual([400, 100, 50]);
});

test("below its least a layer takes what nobody needs, then from the layers behind it, never from one before", () => {
  expect(allocate(1000, demands([900, 900, 50], 500))).toEqual([400, 500, 50]);
  expect(allocate(1000, demands([900, 900, 900], 500))).toEqual([400, 500, 100]);
  expect(allocate(1000, demands([900, 900, 900], 5000))).toEqual([400, 600, 0]);
  expect(allocate(1000, demands([900, 450, 900], 500))).toEqual([400, 450, 150]);
  expect(allocate(1000, demands([900, Number.POSITIVE_INFINITY, 900], Number.POSITIVE_INFINITY))).toEqual([
    400, 600, 0,
  ]);
});

test("grants never add up to more than the total, and no layer gets more than it needs", () => {
  const amount = fc.oneof(fc.nat(2000), fc.constant(Number.POSITIVE_INFINITY));
  const demand = fc.record({ need: amount, least: amount, share: fc.constantFrom(0, 0.2, 0.4, 1) });
  fc.assert(
    fc.property(fc.nat(1500), fc.array(demand, { maxLength: 4 }), (total, all) => {
      const grants = allocate(total, all);
      expect(grants.reduce((sum, grant) => sum + grant, 0)).toBeLessThanOrEqual(total);
      for (const [index, grant] of grants.entries()) {
        expect(grant).toBeGreaterThanOrEqual(0);
        expect(grant).toBeLessThanOrEqual(all[index]!.need);
      }
    }),
  );
});
