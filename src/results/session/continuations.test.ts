import fc from "fast-check";
import { expect, it } from "vitest";
import { type Position, parseToken, renderToken } from "./continuations.ts";
import { resultId } from "./sample-tool.contract.ts";

const number = fc.nat(1_000_000_000);
const positions: fc.Arbitrary<Position> = fc.oneof(
  fc.record({ at: fc.constant("items" as const), offset: number }),
  fc.record({ at: fc.constantFrom("text" as const, "json" as const), offset: number, from: number }),
  fc.record({ at: fc.constant("fields" as const), from: number }),
);

it("parses tokens of every form", () => {
  const check = (id: number, position: Position): void => {
    const continuation = { id: resultId(id), position };
    expect(parseToken(renderToken(continuation))).toEqual(continuation);
  };
  fc.assert(fc.property(number, positions, check));
  const position = { at: "items", offset: 100 } as const;
  expect(renderToken({ position })).toBe("offset:100");
  expect(parseToken("offset:100")).toEqual({ position });
  expect(renderToken({ id: "k3vbq5zoha", position })).toBe("k3vbq5zoha:offset:100");
  expect(parseToken("r42:offset:100")).toEqual({ id: "r42", position });
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
])("refuses the token %j", (token) => {
  expect(parseToken(token)).toBeUndefined();
});
