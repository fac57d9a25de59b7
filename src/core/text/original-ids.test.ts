import { expect, it } from "vitest";
import { createMark, createOriginalId, isOriginalId, markPattern } from "./original-ids.ts";

it("gives the same facts the same id of 80 bits, and other facts another one", () => {
  const facts = [["a", "b"], ["ab", ""], ["a", "b", ""], ["a", 1], ["a", "1"], [], ["\ud800"], ["\ufffd"]];
  const ids = facts.map(createOriginalId);
  expect(new Set(ids).size).toBe(facts.length);
  expect(facts.map(createOriginalId)).toEqual(ids);
  for (const id of ids) {
    expect(id).toMatch(/^[a-z2-7]{16}$/);
    expect(isOriginalId(id)).toBe(true);
  }
});

it("writes every bit of the hash", () => {
  const ids = Array.from({ length: 400 }, (_, number) => createOriginalId([number]));
  for (let at = 0; at < 16; at++) expect(new Set(ids.map((id) => id[at])).size).toBe(32);
});

it("gives a conversation one mark", () => {
  expect(createMark("toolu_01")).toBe(createMark("toolu_01"));
  expect(createMark("toolu_01")).not.toBe(createMark("toolu_02"));
  expect(createMark("toolu_01")).toMatch(new RegExp(`^${markPattern}$`));
});

it("reads the ids of older versions, and nothing else", () => {
  for (const text of ["r12", "k3vbq5zoha"]) expect(isOriginalId(text)).toBe(true);
  for (const text of ["", "r", "r1x", "r123456789", "K3VBQ5ZOHA", "k3vbq5zoh", "k3vbq5zohaa", "__proto__"]) {
    expect(isOriginalId(text)).toBe(false);
  }
});
