import { describe, expect, it } from "vitest";
import { imageSize, mediaTokens } from "./media-tokens.ts";

function gifOf(width: number, height: number): string {
  const bytes = Buffer.from("GIF89a\0\0\0\0\0\0\0", "latin1");
  bytes.writeUInt16LE(width, 6);
  bytes.writeUInt16LE(height, 8);
  return bytes.toString("base64");
}

describe("tokens of content that is not text", () => {
  it("are one per patch of 28 pixels, after scaling to the tier's limits", () => {
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
      expect({ standard: mediaTokens.image(data, "standard"), high: mediaTokens.image(data, "high") }).toEqual(
        expected,
      );
    }
  });

  it("are a constant for an image whose size cannot be read", () => {
    expect(mediaTokens.image(undefined, "standard")).toBe(2000);
    expect(mediaTokens.image("AAAA", "high")).toBe(2000);
  });

  it("use the expensive tier unless the model is known to be older", () => {
    expect(mediaTokens.tierOf("claude-sonnet-4-5")).toBe("standard");
    expect(mediaTokens.tierOf("claude-opus-4-7")).toBe("high");
    expect(mediaTokens.tierOf("someone/else")).toBe("high");
    expect(mediaTokens.tierOf(undefined)).toBe("high");
  });

  it("are 3,000 per PDF page, counted by page objects or by size, for 1 to 600 pages", () => {
    const pdf = (text: string) => Buffer.from(text, "latin1").toString("base64");
    expect(mediaTokens.pdf(pdf("%PDF /Type /Pages /Type/Page\n/Type  /Page>> /Type /PageLabel"))).toBe(6000);
    expect(mediaTokens.pdf(pdf(`%PDF${"x".repeat(120_000)}`))).toBe(9000);
    expect(mediaTokens.pdf("")).toBe(3000);
    expect(mediaTokens.pdf(pdf("/Type /Page ".repeat(5000)))).toBe(600 * 3000);
    expect(mediaTokens.pdf(undefined)).toBe(30_000);
  });

  it("of sealed content grow with its size, and are never fewer than those of its readable text", () => {
    expect(mediaTokens.sealed("", { bytes: 40, tokens: 10 })).toBe(10);
    expect(mediaTokens.sealed("A".repeat(((80 + 174) * 4) / 3), { bytes: 40, tokens: 10 })).toBe(20);
    expect(mediaTokens.sealed("", { bytes: 0, tokens: 0 })).toBe(1);
  });
});

function png(width: number, height: number): Buffer {
  const bytes = Buffer.alloc(40);
  bytes.write("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "latin1");
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return bytes;
}

function gif(width: number, height: number): Buffer {
  const bytes = Buffer.from("GIF89a\0\0\0\0\0\0\0", "latin1");
  bytes.writeUInt16LE(width, 6);
  bytes.writeUInt16LE(height, 8);
  return bytes;
}

function webp(chunk: "VP8 " | "VP8L" | "VP8X", width: number, height: number): Buffer {
  const bytes = Buffer.alloc(40);
  bytes.write(`RIFF....WEBP${chunk}`, "latin1");
  if (chunk === "VP8 ") {
    bytes.writeUInt16LE(width, 26);
    bytes.writeUInt16LE(height, 28);
  } else if (chunk === "VP8L") {
    bytes.writeUInt32LE(((width - 1) | ((height - 1) << 14)) >>> 0, 21);
  } else {
    bytes.writeUIntLE(width - 1, 24, 3);
    bytes.writeUIntLE(height - 1, 27, 3);
  }
  return bytes;
}

function jpeg(width: number, height: number, segmentBytes: readonly number[], start = 0xc0): Buffer {
  const segments = segmentBytes.map((length, index) => {
    const segment = Buffer.alloc(length + 2, 0xc0);
    segment.writeUInt16BE(index % 2 === 0 ? 0xffe1 : 0xffc4, 0); // EXIF, a Huffman table
    segment.writeUInt16BE(length, 2);
    return segment;
  });
  const frame = Buffer.alloc(19);
  frame.writeUInt16BE(0xff00 | start, 0);
  frame.writeUInt16BE(17, 2);
  frame.writeUInt16BE(height, 5);
  frame.writeUInt16BE(width, 7);
  return Buffer.concat([Buffer.from([0xff, 0xd8]), ...segments, frame]);
}

describe("the size of an image", () => {
  const size = { width: 1234, height: 567 };

  it("is read from PNG, GIF and the three kinds of WebP", () => {
    const images = [png(1234, 567), gif(1234, 567)];
    for (const chunk of ["VP8 ", "VP8L", "VP8X"] as const) images.push(webp(chunk, 1234, 567));
    for (const image of images) expect(imageSize(image.toString("base64"))).toEqual(size);
  });

  it("is read from JPEG after metadata of any length, baseline or progressive", () => {
    for (const segments of [[], [14], [65_000, 3, 40_001, 7_777]]) {
      expect(imageSize(jpeg(1234, 567, segments).toString("base64"))).toEqual(size);
      expect(imageSize(jpeg(1234, 567, segments, 0xc2).toString("base64"))).toEqual(size);
    }
  });

  it("is found in base64 that is broken into lines", () => {
    const lines = jpeg(1234, 567, [2000]).toString("base64").replace(/.{76}/g, "$&\r\n");
    expect(imageSize(lines)).toEqual(size);
  });

  it("is read from 10 MB without decoding them", { tags: ["perf"] }, () => {
    const large = Buffer.concat([jpeg(1234, 567, [30_000]), Buffer.alloc(10_000_000)]).toString("base64");
    let [reading, decoding] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    // The minimum of several alternating runs, because other tests share the processor.
    for (let round = 0; round < 5; round++) {
      const started = performance.now();
      expect(imageSize(large)).toEqual(size);
      const between = performance.now();
      expect(Buffer.from(large, "base64").length).toBeGreaterThan(10_000_000);
      reading = Math.min(reading, between - started);
      decoding = Math.min(decoding, performance.now() - between);
    }
    expect(reading / decoding).toBeLessThan(0.2);
  });

  it("is unknown for data that is not an image, cut short, or zero", () => {
    const broken = ["", "AAAA", "not base64 at all!", Buffer.alloc(64).toString("base64")];
    broken.push(png(0, 5).toString("base64"), png(9, 9).subarray(0, 20).toString("base64"));
    broken.push(jpeg(5, 5, [400]).subarray(0, 300).toString("base64"));
    broken.push(webp("VP8 ", 0, 0).toString("base64"), Buffer.from([0xff, 0xd8, 0xff]).toString("base64"));
    for (const data of broken) expect(imageSize(data)).toBeUndefined();
  });
});
