import { expect, it } from "vitest";
import { type BillableBlock, type BlockKind, createPrefixChain, type PrefixChain } from "./prefix-chain.ts";

function block(key: string | number, kind: BlockKind = "text", tokens = 10): BillableBlock {
  return { key, kind, tokens };
}

function chainOf(blocks: readonly BillableBlock[], mode: "positions" | "blocks" = "positions"): PrefixChain {
  const chain = createPrefixChain(mode);
  chain.update(blocks);
  return chain;
}

function facts(chain: PrefixChain) {
  return Array.from({ length: chain.length }, (_none, index) => [
    chain.hash(index),
    chain.tokens(index),
    chain.position(index),
  ]);
}

it("adds tokens up and counts runs of calls and results as one position", () => {
  const kinds: BlockKind[] = ["prefix", "text", "text", "tool_call", "tool_call", "tool_result", "tool_result", "text"];
  const blocks = kinds.map((kind, index) => block(index, kind));
  const chain = chainOf(blocks);
  expect(kinds.map((_kind, index) => chain.position(index))).toEqual([0, 1, 2, 3, 3, 4, 4, 5]);
  expect(kinds.map((_kind, index) => chain.tokens(index))).toEqual([10, 20, 30, 40, 50, 60, 70, 80]);
  expect(chainOf(blocks, "blocks").position(7)).toBe(7);
});

it("has the same facts about a request, whatever came before it", () => {
  const long = Array.from({ length: 3_000 }, (_none, index) => block(`k${index}`, "text", index));
  const requests = [
    long.slice(0, 10),
    long,
    long.slice(0, 700),
    [...long.slice(0, 300), block("other"), ...long.slice(301)],
    long.map((each, index) => (index === 5 ? { ...each, kind: "tool_call" as const } : each)),
    long.map((each, index) => (index === 4 ? { ...each, tokens: 7 } : each)),
    long.map((each, index) => (index === 4 || index === 5 ? { ...each, kind: "tool_call" as const } : each)),
    [],
    long,
  ];
  const chain = createPrefixChain("positions");
  for (const request of requests) {
    chain.update(request);
    expect(facts(chain)).toEqual(facts(chainOf(request)));
  }
});

it("has a different hash for every prefix", () => {
  const hashes = new Set<number>();
  for (let variant = 0; variant < 20; variant++) {
    const chain = chainOf(Array.from({ length: 2_000 }, (_none, index) => block(variant * 2_000 + index)));
    for (const [hash] of facts(chain)) hashes.add(hash!);
  }
  expect(hashes.size).toBe(40_000);
  const [first, second] = [chainOf([block("a"), block("b")]), chainOf([block("b"), block("a")])];
  expect(first.hash(1)).not.toBe(second.hash(1));
});

it("finds how many blocks two requests have in common", () => {
  const blocks = Array.from({ length: 100 }, (_none, index) => block(index));
  const chain = chainOf(blocks);
  for (const same of [0, 1, 2, 50, 99]) {
    const other = chainOf([...blocks.slice(0, same), block("other"), ...blocks.slice(same + 1)]);
    expect(chain.commonBlocks(other.snapshot())).toBe(same);
  }
  expect(chain.commonBlocks(chain.snapshot())).toBe(100);
  expect(chain.commonBlocks(chainOf(blocks.slice(0, 7)).snapshot())).toBe(7);
  expect(chainOf([]).commonBlocks(chain.snapshot())).toBe(0);
});

it("stays usable after a block is refused", () => {
  const chain = chainOf([block("a"), block("b")]);
  expect(() => chain.update([block("a"), block("c"), block("d", "text", Number.NaN)])).toThrow(
    "blocks[2].tokens is NaN",
  );
  chain.update([block("a"), block("c")]);
  expect(facts(chain)).toEqual(facts(chainOf([block("a"), block("c")])));
});
