import fc from "fast-check";
import { expect, test } from "vitest";
import { chunkItems, givenItems, itemsFrom } from "./item-chunks.ts";

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 2_000 : 100;

async function collect(items: AsyncIterable<unknown>): Promise<unknown[]> {
  const collected: unknown[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

const longText = fc.tuple(fc.string({ unit: "binary", minLength: 1 }), fc.nat(9)).map(([text, times]) => {
  return text.repeat(times * 20_000);
});
const item = fc.oneof(
  { weight: 5, arbitrary: fc.string({ unit: "binary" }) },
  { weight: 3, arbitrary: fc.jsonValue() },
  { weight: 1, arbitrary: longText },
  { weight: 1, arbitrary: fc.constantFrom(undefined, 1n, () => 1, new Date(0), { a: undefined }) },
);

/** As it comes back from JSON; what JSON cannot say is a note. */
const plain = (value: unknown): unknown =>
  typeof value === "bigint"
    ? "[unreadable item: Do not know how to serialize a BigInt]"
    : JSON.parse(JSON.stringify(value) ?? "null");

test("any items come back from any offset on", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(item), fc.nat(1_000), fc.nat(), async (items, offset, skip) => {
      const { chunks, starts, count } = await chunkItems(items, offset);
      expect(count).toBe(items.length);
      expect(starts).toHaveLength(chunks.length);
      const from = items.length === 0 ? 0 : skip % items.length;
      const read = itemsFrom(starts, offset + from, (chunk) => JSON.parse(chunks[chunk]!));
      expect(await collect(read)).toEqual(items.slice(from).map(plain));
    }),
    { numRuns },
  );
});

test("they are there again as they were given, also when they could be read only once", async () => {
  const items = Array.from({ length: 60_000 }, (_, index) => (index % 3 === 0 ? { index } : `line ${index}`));
  async function* once() {
    yield* items;
  }
  for (const source of [items, once(), items.values()]) {
    const chunked = await chunkItems(source, 7);
    expect(chunked.chunks.length).toBeGreaterThan(2);
    expect(chunked.starts[0]).toBe(7);
    expect(await collect(givenItems(chunked))).toEqual(items);
  }
  expect(await collect(givenItems(await chunkItems([], 0)))).toEqual([]);
});

test("what was read before a failure is kept, with the failure", async () => {
  const failure = new Error("the pipe broke");
  function* broken() {
    yield "one";
    throw failure;
  }
  expect(await chunkItems(broken(), 0)).toEqual({
    chunks: ['["one"]'],
    starts: [0],
    count: 1,
    first: ["one"],
    failure,
  });
});
