import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createHashKey, createKeyedHash } from "../text/index.ts";
import { hashMessage, nameMessage } from "./hash-message.ts";

const runs = process.env.PLIMSOLL_DEEP === "1" ? 5000 : 200;
const user = (content: unknown) => ({ role: "user", content });

describe("the hash of a message", () => {
  it("is the same for a copy of any content, and without what JSON leaves out", () => {
    const check = (message: object) => {
      expect(hashMessage(JSON.parse(JSON.stringify(message)))).toBe(hashMessage(message));
    };
    fc.assert(fc.property(fc.object({ maxDepth: 3, withUnicodeString: true }), check), { numRuns: runs });
    expect(hashMessage({ a: undefined, b: [undefined, Number.NaN, -0] })).toBe(hashMessage({ b: [null, null, 0] }));
    expect(hashMessage({ at: new Date(0), link: new URL("https://example.org/") })).toBe(
      hashMessage({ at: "1970-01-01T00:00:00.000Z", link: "https://example.org/" }),
    );
  });

  it("differs for contents that JSON writes differently", () => {
    const json = fc.object({
      maxDepth: 2,
      key: fc.constantFrom("a", "b", "ab"),
      values: [fc.constantFrom("", "a", "1", 1, null, true)],
    });
    const check = (first: object, second: object) => {
      const isSame = JSON.stringify(first) === JSON.stringify(second);
      expect(hashMessage(first) === hashMessage(second)).toBe(isSame);
    };
    fc.assert(fc.property(json, json, check), { numRuns: 5 * runs });
  });

  it("differs for similar contents: kinds of values, string boundaries, lone surrogates", () => {
    const alike: unknown[] = [
      ...["1", 1, [1], ["1"], { 0: 1 }, "[1]", true, "true", null, "null", "", [], {}, [[]], [{}]],
      ...[["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""], { ab: "c" }, { a: "bc" }, { abc: "" }],
      ...["\ud800", "\ud801", "\udc00", "\ufffd", "\ud800\udc00", "\udc00\ud800"],
      ...[new Uint8Array([1, 2]), new Uint8Array([1, 3]), new Uint8Array([1, 2, 0])],
    ];
    const padded = ["\ud800", "\ufffd", "\udc00", "x", "\u0078\u0000", "ÿ", "Ā"].map((end) => "y".repeat(60) + end);
    const hashes = [...alike, ...padded].map((content) => hashMessage(user(content)));
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  it("changes with any character, wherever it is and however long the text is", () => {
    for (const length of [1, 16, 47, 48, 49, 63, 64, 1000, 16_384, 16_385, 40_000]) {
      const text = "é".repeat(length);
      const base = hashMessage(user(text));
      for (const at of new Set([0, 1, 15, 16, length >> 1, 16_383, 16_384, length - 2, length - 1])) {
        if (at < 0 || at >= length) continue;
        for (const other of ["e", "—", "\0"]) {
          expect(hashMessage(user(text.slice(0, at) + other + text.slice(at + 1)))).not.toBe(base);
        }
      }
      expect(hashMessage(user(`${text}\0`))).not.toBe(base);
    }
  });

  it("ignores cache markers, wherever they are", () => {
    const plain = user([{ type: "text", text: "hi", input: { path: "a" } }]);
    const marker = { type: "ephemeral" };
    const marked = [
      { ...plain, cache_control: marker },
      user([{ type: "text", cache_control: marker, text: "hi", input: { path: "a" } }]),
      { ...plain, providerOptions: { anthropic: { cacheControl: marker } } },
      { ...plain, providerOptions: { bedrock: { cachePoint: { type: "default" } } } },
      user([{ type: "text", text: "hi", input: { path: "a" }, prompt_cache_breakpoint: { mode: "explicit" } }]),
    ];
    for (const message of marked) expect(hashMessage(message)).toBe(hashMessage(plain));
    const options = { openai: { itemId: "1" }, anthropic: { cacheControl: marker } };
    expect(hashMessage({ ...plain, providerOptions: options })).not.toBe(hashMessage(plain));
  });

  it("is the same for a plain text and a list of that one text", () => {
    const block = { type: "text", text: "hi", cache_control: { type: "ephemeral" } };
    const plain = hashMessage({ role: "user", content: "hi" });
    expect(hashMessage({ role: "user", content: [block] })).toBe(plain);
    expect(hashMessage({ role: "user", content: [block, block] })).not.toBe(plain);
    expect(hashMessage({ role: "user", content: ["hi"] })).not.toBe(plain);
  });

  it("is the same for them in a result, and nowhere else", () => {
    const list = [{ type: "text", text: "hi" }];
    const holding = (type: string, content: unknown) => hashMessage(user([{ type, tool_use_id: "1", content }]));
    expect(holding("tool_result", "hi")).toBe(holding("tool_result", list));
    expect(holding("tool_result", "hi")).not.toBe(holding("tool_result", "ho"));
    expect(holding("note", "hi")).not.toBe(holding("note", list));
  });

  it("is the same under one key, and another under another key", () => {
    const key = createHashKey();
    const hash = hashMessage(user("hello"), createKeyedHash(key));
    expect(hashMessage(user("hello"), createKeyedHash(key))).toBe(hash);
    expect(hashMessage(user("hello"), createKeyedHash(createHashKey()))).not.toBe(hash);
  });

  it("has a name that is the same in every process", () => {
    expect(nameMessage(user("hello"))).toBe("UWISisSX-RIXnDYv1JRYxp");
    expect(nameMessage(user([{ type: "text", text: "hello" }]))).toBe(nameMessage(user("hello")));
    expect(nameMessage(user("\ud800"))).not.toBe(nameMessage(user("\ufffd")));
  });

  it("rarely collides for messages that differ in one number", () => {
    const hashes = Array.from({ length: 20_000 }, (_, index) =>
      hashMessage(user(`result ${index} ${"ok ".repeat(20)}`)),
    );
    // 32 of the 128 bits: the whole hash would hide a weakness.
    for (const start of [0, 5, 10]) {
      const parts = new Set(hashes.map((hash) => hash.slice(start, start + 5)));
      expect(parts.size).toBeGreaterThan(19_000);
    }
  });

  it("refuses a message that is nested without end", () => {
    const cyclic: { content: unknown } = { content: "" };
    cyclic.content = [cyclic];
    expect(() => hashMessage(cyclic)).toThrow(expect.objectContaining({ code: "invalid_message" }));
  });
});
