import fc from "fast-check";
import { expect, it } from "vitest";
import { createBytePairQueue } from "./byte-pair-queue.ts";

function popAll(queue: ReturnType<typeof createBytePairQueue>): [number, number][] {
  const popped: [number, number][] = [];
  for (let part = queue.pop(); part >= 0; part = queue.pop()) popped.push([queue.rank(), part]);
  return popped;
}

it("gives back the lowest rank first and the leftmost of equals", () => {
  const pair = fc.tuple(fc.nat(30), fc.nat(100));
  const property = fc.property(fc.array(pair, { maxLength: 200 }), (pairs) => {
    const queue = createBytePairQueue();
    for (const [rank, part] of pairs) queue.push(rank, part);
    expect(popAll(queue)).toEqual(pairs.toSorted((a, b) => a[0] - b[0] || a[1] - b[1]));
  });
  fc.assert(property, { numRuns: 500 });
});

it("takes lower ranks while a bucket empties, and a rank again after it was empty", () => {
  const queue = createBytePairQueue();
  queue.push(5, 2);
  queue.push(5, 1);
  expect([queue.pop(), queue.rank()]).toEqual([1, 5]);
  queue.push(3, 9);
  expect(popAll(queue)).toEqual([
    [3, 9],
    [5, 2],
  ]);
  queue.push(5, 4);
  expect(popAll(queue)).toEqual([[5, 4]]);
});
