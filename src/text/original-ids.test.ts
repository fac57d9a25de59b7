import { expect, it } from "vitest";
import { createOriginalIds, isOriginalId } from "./original-ids.ts";

const owners = ["intake", "history", "session"] as const;

it("gives each number its own id, and finds the number again", () => {
  const seen = new Set<string>();
  for (const maker of owners) {
    for (const sessionId of ["one", "two"]) {
      const ids = createOriginalIds({ maker, sessionId });
      for (const number of [1, 2, 3, 1_000, 33_554_431]) {
        const id = ids.idOf(number, "text");
        expect(id).toMatch(/^[a-z2-7]{10}$/);
        expect(ids.sequenceOf(id)).toBe(number);
        seen.add(id);
      }
    }
  }
  expect(seen.size).toBe(3 * 2 * 5);
});

it("tells apart two contents with the same number, and the agents of a session", () => {
  const ids = createOriginalIds({ maker: "intake", sessionId: "s", agentId: "main" });
  expect(ids.idOf(1, "one")).not.toBe(ids.idOf(1, "two"));
  expect(ids.idOf(1, "one")).toBe(
    createOriginalIds({ maker: "intake", sessionId: "s", agentId: "main" }).idOf(1, "one"),
  );
  expect(ids.idOf(1, "one")).not.toBe(createOriginalIds({ maker: "intake", sessionId: "s" }).idOf(1, "one"));
});

it("reads the ids of older versions, and nothing else", () => {
  const ids = createOriginalIds({ maker: "history", sessionId: "s" });
  expect(ids.sequenceOf("r12")).toBe(12);
  for (const text of ["", "r", "r1x", "r123456789", "K3VBQ5ZOHA", "k3vbq5zoh", "k3vbq5zohaa", "__proto__"]) {
    expect(isOriginalId(text)).toBe(false);
    expect(ids.sequenceOf(text)).toBeUndefined();
  }
});
