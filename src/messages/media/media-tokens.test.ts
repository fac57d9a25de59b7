import { describe, expect, it } from "vitest";
import { imageTierOf, imageTokens, pdfTokens, sealedTokens } from "./media-tokens.ts";

function gifOf(width: number, height: number): string {
  const bytes = Buffer.from("GIF89a\0\0\0\0\0\0\0", "latin1");
  bytes.writeUInt16LE(width, 6);
  bytes.writeUInt16LE(height, 8);
  return bytes.toString("base64");
}

describe("tokens of what is no text", () => {
  it("are one a patch of 28 pixels, after scaling to the tier's edge and patches", () => {
    const vectors: [number, number, number, number][] = [
      [1, 1, 1, 1],
      [256, 256, 100, 100],
      [1024, 1024, 37 * 37, 37 * 37],
      [1280, 720, 1196, 1196],
      [1920, 1080, 1560, 2691],
      [1075, 1520, 33 * 47, 39 * 55],
      [3840, 2160, 52 * 30, 4784],
      [4032, 3024, 46 * 34, 79 * 60],
      [8000, 10, 56, 92],
    ];
    for (const [width, height, standard, high] of vectors) {
      const data = gifOf(width, height);
      const expected = { standard, high };
      expect({ standard: imageTokens(data, "standard"), high: imageTokens(data, "high") }).toEqual(expected);
    }
  });

  it("are a constant for an image whose size cannot be read", () => {
    expect(imageTokens(undefined, "standard")).toBe(2000);
    expect(imageTokens("AAAA", "high")).toBe(2000);
  });

  it("take the dear tier unless the model is known to be older", () => {
    expect(imageTierOf("claude-sonnet-4-5")).toBe("standard");
    expect(imageTierOf("claude-opus-4-7")).toBe("high");
    expect(imageTierOf("someone/else")).toBe("high");
    expect(imageTierOf(undefined)).toBe("high");
  });

  it("are 3,000 a PDF page, counted by page objects or by size, at least one page and at most 600", () => {
    const pdf = (text: string) => Buffer.from(text, "latin1").toString("base64");
    expect(pdfTokens(pdf("%PDF /Type /Pages /Type/Page\n/Type  /Page>> /Type /PageLabel"))).toBe(6000);
    expect(pdfTokens(pdf(`%PDF${"x".repeat(120_000)}`))).toBe(9000);
    expect(pdfTokens("")).toBe(3000);
    expect(pdfTokens(pdf("/Type /Page ".repeat(5000)))).toBe(600 * 3000);
    expect(pdfTokens(undefined)).toBe(30_000);
  });

  it("of sealed content follow its size, never less than its readable text", () => {
    expect(sealedTokens("", { bytes: 40, tokens: 10 })).toBe(10);
    expect(sealedTokens("A".repeat(((80 + 174) * 4) / 3), { bytes: 40, tokens: 10 })).toBe(20);
    expect(sealedTokens("", { bytes: 0, tokens: 0 })).toBe(1);
  });
});
