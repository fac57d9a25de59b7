import { createHash as createNodeHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createHash, createPlainHash, randomUUID } from "./crypto.ts";

test("Node's hash is used where it exists", () => {
  expect(Object.getPrototypeOf(createHash("sha256"))).toBe(Object.getPrototypeOf(createNodeHash("sha256")));
});

// The vectors of FIPS 180-4, and the lengths around a block.
test.each([
  ["", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
  ["abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
  [
    "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
  ],
])("the plain hash of %j is the published one", (text, hash) => {
  expect(createPlainHash().update(text).digest("hex")).toBe(hash);
});

test("the plain hash equals Node's, however a text is cut, encoded and copied", () => {
  const part = fc.tuple(fc.string({ unit: "binary", maxLength: 150 }), fc.constantFrom("utf8", "utf16le", "latin1"));
  fc.assert(
    fc.property(fc.array(part), fc.int32Array(), (parts, words) => {
      const hashes = [createPlainHash(), createNodeHash("sha256")];
      for (const hash of hashes) for (const [text, encoding] of parts) hash.update(text, encoding as "utf8");
      const copies = hashes.map((hash) => hash.copy().update(words).digest("base64url"));
      expect(copies[0]).toBe(copies[1]);
      expect([...hashes[0]!.digest()]).toEqual([...hashes[1]!.digest()]);
    }),
  );
});

test("ids are random UUIDs", () => {
  expect(randomUUID()).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
});
