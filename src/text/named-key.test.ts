import { expect, test } from "vitest";
import { namedKey } from "./named-key.ts";

test("a key has the name that people know, and a hash that tells two of that name apart", () => {
  expect(namedKey("my shop", "/a/my shop")).toMatch(/^my-shop-[0-9a-f]{10}$/);
  expect(namedKey("shop", "/a/shop")).not.toBe(namedKey("shop", "/b/shop"));
  expect(namedKey("shop", "/a/shop")).toBe(namedKey("shop", "/a/shop"));
});

test("whatever the name, a key can name a file", () => {
  for (const name of ["", "../..", "a/b\0c", "名前", "x".repeat(300)])
    expect(namedKey(name, "identity")).toMatch(/^[\w.-]{1,51}$/);
});
