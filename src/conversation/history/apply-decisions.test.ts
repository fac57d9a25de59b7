import fc from "fast-check";
import { expect, it } from "vitest";
import { shortenText } from "./apply-decisions.ts";

it("keeps the beginning and the end, and says how much is missing", () => {
  expect(shortenText("abcdefghij", { head: 3, tail: 2 })).toBe("abc\n[trimmed: 5 characters]\nij");
});

it("returns a text that is short enough unchanged", () => {
  expect(shortenText("abcdef", { head: 3, tail: 3 })).toBe("abcdef");
  expect(shortenText("", { head: 0, tail: 0 })).toBe("");
});

it("never cuts a surrogate pair, and keeps lone surrogates", () => {
  const size = fc.nat({ max: 40 });
  const check = (text: string, head: number, tail: number) => {
    const shortened = shortenText(text, { head, tail });
    const parts = /^([\s\S]*)\n\[trimmed: (\d+) characters\]\n([\s\S]*)$/.exec(shortened);
    if (head + tail >= text.length) {
      expect(shortened).toBe(text);
      return;
    }
    const [, start, count, end] = parts!;
    expect(text.startsWith(start!) && text.endsWith(end!)).toBe(true);
    expect(start!.length + Number(count) + end!.length).toBe(text.length);
    expect(start!.length).toBeGreaterThanOrEqual(head - 1);
    const gone = text.slice(start!.length, text.length - end!.length);
    for (const [left, right] of [
      [start!, gone],
      [gone, end!],
    ] as const) {
      expect(/[\ud800-\udbff]$/.test(left) && /^[\udc00-\udfff]/.test(right)).toBe(false);
    }
  };
  fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 40 }), size, size, check));
});
