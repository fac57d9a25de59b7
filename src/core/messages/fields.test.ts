import { expect, it } from "vitest";
import { countMessages } from "./count-messages.ts";
import { cacheMarkers, withoutCacheMarkers } from "./fields.ts";
import { hashMessage } from "./hash-message.ts";

it("cache markers are neither counted nor hashed, even on content of an unknown type", () => {
  const counter = { name: "characters", count: (text: string) => text.length };
  const block = { type: "hologram", beam: "blue" };
  for (const marker of cacheMarkers) {
    for (const format of ["anthropic", "openai", "responses"] as const) {
      const count = (part: object) => countMessages([{ role: "user", content: [part] }], counter, { format });
      expect(count({ ...block, [marker]: { type: "ephemeral" } })).toBe(count(block));
    }
    expect(hashMessage({ ...block, [marker]: { type: "ephemeral" } })).toBe(hashMessage(block));
  }
});

it("a block without markers is returned as the same object", () => {
  const block = { type: "text", text: "a" };
  expect(withoutCacheMarkers(block)).toBe(block);
  expect(withoutCacheMarkers({ ...block, cachePoint: { type: "default" } })).toEqual(block);
});
