/** Estimates the tokens of content that is not text: images, PDF pages, sealed thinking. Each rule names its source.
 *  Content that cannot be read costs a constant. */
import { Buffer } from "../bytes.ts";
import { familyOfModel } from "../tokens/index.ts";

export type ImageTier = "standard" | "high";

/** The rules for each kind of content. */
export const mediaTokens = {
  /** Returns the resolution at which a model sees images. An unknown model gets the more expensive tier, so that a
   *  budget still holds. */
  tierOf(model: string | undefined): ImageTier {
    return model !== undefined && familyOfModel(model) === "claude-3" ? "standard" : "high";
  },

  image(base64: string | undefined, tier: ImageTier): number {
    const size = base64 === undefined ? undefined : imageSize(base64);
    return size === undefined ? rules.unknownImageTokens : patchTokens(size, tier);
  },

  /** A PDF is billed by the page, as text and as an image. If the page objects are in compressed streams, the size
   *  gives an estimate. */
  pdf(base64: string | undefined): number {
    if (base64 === undefined) return rules.unknownPdfPages * rules.pdfPageTokens;
    const bytes = Buffer.from(base64, "base64");
    const pages = countPageObjects(bytes) || Math.ceil(bytes.length / rules.pdfBytesPerPage);
    return Math.min(Math.max(pages, 1), rules.maxPdfPages) * rules.pdfPageTokens;
  },

  /** Returns the tokens of encrypted content: those of its readable text, scaled up to the hidden length, at least
   *  1. */
  sealed(sealed: string, readable: { bytes: number; tokens: number }): number {
    const hiddenBytes = Math.max(0, sealed.length * 0.75 - rules.sealHeaderBytes);
    if (readable.bytes === 0) return Math.max(1, Math.ceil(hiddenBytes / rules.sealedBytesPerToken));
    return Math.ceil(readable.tokens * Math.max(1, hiddenBytes / readable.bytes));
  },
} as const;

/** Each rule names its source. */
const rules = {
  // One token per patch of 28 px, after scaling to both limits (platform.claude.com, Vision, 2026-09). High
  // resolution: Claude 4.7 and later, the models with the newer tokenizer.
  patchPixels: 28,
  standard: { edge: 1568, tokens: 1568 },
  high: { edge: 2576, tokens: 4784 },
  unknownImageTokens: 2000, // the context-engineering RFC, section 7.1
  pdfPageTokens: 3000, // upper end of 1,500–3,000 per page (Anthropic, PDF support, 2026)
  maxPdfPages: 600, // the limit of a request (same page)
  pdfBytesPerPage: 50_000, // own choice: text pages are about this size, scans larger
  unknownPdfPages: 10, // own choice, for a URL or a file id
  // Signature minus thinking text, the same in unsummarised blocks of Claude 4.5 sessions (measured 2026-11).
  sealHeaderBytes: 174,
  sealedBytesPerToken: 3, // English prose on current Claude models: 3.09 bytes per token (measured 2026-11)
} as const;

function patchTokens(size: ImageSize, tier: ImageTier): number {
  const limit = rules[tier];
  const long = Math.max(size.width, size.height);
  const short = Math.min(size.width, size.height);
  let fits = 1;
  let beyond = Math.min(long, limit.edge) + 1;
  // Find the largest long edge whose patches are within the limit. Patches grow with the edge.
  while (beyond - fits > 1) {
    const edge = (fits + beyond) >> 1;
    if (patches(edge, (short * edge) / long) <= limit.tokens) fits = edge;
    else beyond = edge;
  }
  return patches(fits, (short * fits) / long);
}

function patches(width: number, height: number): number {
  return Math.ceil(width / rules.patchPixels) * Math.ceil(Math.max(1, Math.round(height)) / rules.patchPixels);
}

function countPageObjects(pdf: Buffer): number {
  let pages = 0;
  for (let at = pdf.indexOf("/Type"); at !== -1; at = pdf.indexOf("/Type", at + 5)) {
    if (/^\s*\/Page\b/.test(pdf.toString("latin1", at + 5, at + 24))) pages++;
  }
  return pages;
}

/** The size of an image in pixels. */
interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** Reads width and height from the start of an image's base64, whatever its media type says. Decodes only a few
 *  bytes. */
export function imageSize(base64: string): ImageSize | undefined {
  const maxWrappedChars = 262_144;
  // Mail tools break base64 into lines, which would shift every offset.
  const data = /\s/.test(base64.slice(0, 128)) ? base64.slice(0, maxWrappedChars).replace(/\s+/g, "") : base64;
  const head = bytesAt(data, 0, 32);
  const size = pngSize(head) ?? gifSize(head) ?? webpSize(head) ?? jpegSize(data, head);
  return size !== undefined && size.width > 0 && size.height > 0 ? size : undefined;
}

// Every 4 characters hold 3 bytes, so any byte range can be decoded separately.
function bytesAt(data: string, offset: number, length: number): Buffer {
  const skip = offset % 3;
  const start = ((offset - skip) / 3) * 4;
  const end = start + Math.ceil((skip + length) / 3) * 4;
  return Buffer.from(data.slice(start, end), "base64").subarray(skip, skip + length);
}

function pngSize(head: Buffer): ImageSize | undefined {
  if (head.length < 24 || head.readUInt32BE(0) !== 0x89504e47) return undefined;
  return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) };
}

function gifSize(head: Buffer): ImageSize | undefined {
  if (head.length < 10 || head.toString("latin1", 0, 4) !== "GIF8") return undefined;
  return { width: head.readUInt16LE(6), height: head.readUInt16LE(8) };
}

function webpSize(head: Buffer): ImageSize | undefined {
  if (head.length < 30 || head.toString("latin1", 8, 12) !== "WEBP") return undefined;
  switch (head.toString("latin1", 12, 16)) {
    case "VP8 ":
      return { width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff };
    case "VP8L": {
      const bits = head.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case "VP8X":
      return { width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 };
    default:
      return undefined;
  }
}

// The frame header may come after kilobytes of EXIF and colour profiles, so go from segment to segment.
function jpegSize(data: string, head: Buffer): ImageSize | undefined {
  if (head.length < 4 || head.readUInt16BE(0) !== 0xffd8) return undefined;
  let offset = 2;
  for (let segments = 0; segments < 256; segments++) {
    const header = bytesAt(data, offset, 9);
    if (header.length < 9 || header[0] !== 0xff) return undefined;
    const marker = header.readUInt8(1);
    if (marker === 0xff) offset += 1;
    // A frame header. C4, C8 and CC are tables and reserved codes (ITU-T T.81, table B.1).
    else if ((marker & 0xf0) === 0xc0 && ![0xc4, 0xc8, 0xcc].includes(marker))
      return { width: header.readUInt16BE(7), height: header.readUInt16BE(5) };
    else offset += 2 + header.readUInt16BE(2);
  }
  return undefined;
}
