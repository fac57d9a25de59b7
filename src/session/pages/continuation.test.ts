import fc from "fast-check";
import { expect, it } from "vitest";
import { offsetToken, type Position, parseToken, storedToken } from "./continuation.ts";

const number = fc.nat(1_000_000_000);
const positions: fc.Arbitrary<Position> = fc.oneof(
  fc.record({ at: fc.constant("items" as const), offset: number }),
  fc.record({ at: fc.constantFrom("text" as const, "json" as const), offset: number, from: number }),
  fc.record({ at: fc.constant("fields" as const), from: number }),
);

it("a token says where it leads", () => {
  const check = (id: number, position: Position): void => {
    expect(parseToken(storedToken(`r${id}`, position))).toEqual({ id: `r${id}`, position });
  };
  fc.assert(fc.property(number, positions, check));
  expect(offsetToken(100)).toBe("offset:100");
  expect(parseToken("offset:100")).toEqual({ position: { at: "items", offset: 100 } });
  expect(storedToken("r42", { at: "items", offset: 100 })).toBe("r42:offset:100");
});

it.each([
  "",
  "offset:",
  "offset:-1",
  "offset:1.5",
  "r42",
  "r42:offset:",
  "r:offset:1",
  "r1:lines:1",
  "offset:1+2",
  "log",
])("%j is no token", (token) => {
  expect(parseToken(token)).toBeUndefined();
});
