/** Tokens of what is no text: images, PDF pages, sealed thinking. Each rule carries its source; what cannot be read costs a stated constant. */
import { familyOfModel } from "../../tokens/index.ts";
import { type ImageSize, imageSize } from "./image-size.ts";

export type ImageTier = "standard" | "high";

/** The resolution at which a model sees images. An unknown model gets the dearer tier, so that a budget still holds. */
export function imageTierOf(model: string | undefined): ImageTier {
  return model !== undefined && familyOfModel(model) === "claude-3" ? "standard" : "high";
}

export function imageTokens(base64: string | undefined, tier: ImageTier): number {
  const size = base64 === undefined ? undefined : imageSize(base64);
  return size === undefined ? unknownImageTokens : patchTokens(size, tier);
}

/** A PDF is billed by the page, as text and as a picture; page objects packed into compressed streams are guessed from the size. */
export function pdfTokens(base64: string | undefined): number {
  if (base64 === undefined) return unknownPdfPages * pdfPageTokens;
  const bytes = Buffer.from(base64, "base64");
  const pages = countPageObjects(bytes) || Math.ceil(bytes.length / pdfBytesPerPage);
  return Math.min(Math.max(pages, 1), maxPdfPages) * pdfPageTokens;
}

/** Tokens behind encrypted content: those of its readable text, scaled up to the hidden length, at least 1. */
export function sealedTokens(sealed: string, readable: { bytes: number; tokens: number }): number {
  const hiddenBytes = Math.max(0, sealed.length * 0.75 - sealHeaderBytes);
  if (readable.bytes === 0) return Math.max(1, Math.ceil(hiddenBytes / sealedBytesPerToken));
  return Math.ceil(readable.tokens * Math.max(1, hiddenBytes / readable.bytes));
}

// One token a 28 px patch, after scaling to both limits (platform.claude.com, Vision, 2026-09).
// High resolution: Claude 4.7 and later, the same models that have the newer tokenizer.
const patchPixels = 28;
const imageLimits: Readonly<Record<ImageTier, { edge: number; tokens: number }>> = {
  standard: { edge: 1568, tokens: 1568 },
  high: { edge: 2576, tokens: 4784 },
};
const unknownImageTokens = 2000; // the context-engineering RFC, section 7.1
const pdfPageTokens = 3000; // upper end of 1,500–3,000 a page (Anthropic, PDF support, 2026)
const maxPdfPages = 600; // a request holds no more (same page)
const pdfBytesPerPage = 50_000; // own choice: text pages are about this size, scans larger
const unknownPdfPages = 10; // own choice, for a URL or a file id
const sealHeaderBytes = 174; // signature minus thinking text, the same in unsummarised blocks of Claude 4.5 sessions (measured 2026-11)
const sealedBytesPerToken = 3; // English prose on current Claude models: 3.09 bytes a token (measured 2026-11)

function patchTokens(size: ImageSize, tier: ImageTier): number {
  const limit = imageLimits[tier];
  const long = Math.max(size.width, size.height);
  const short = Math.min(size.width, size.height);
  let fits = 1;
  let beyond = Math.min(long, limit.edge) + 1;
  // The largest long edge whose patches are within the limit; patches grow with the edge.
  while (beyond - fits > 1) {
    const edge = (fits + beyond) >> 1;
    if (patches(edge, (short * edge) / long) <= limit.tokens) fits = edge;
    else beyond = edge;
  }
  return patches(fits, (short * fits) / long);
}

function patches(width: number, height: number): number {
  return Math.ceil(width / patchPixels) * Math.ceil(Math.max(1, Math.round(height)) / patchPixels);
}

function countPageObjects(pdf: Buffer): number {
  let pages = 0;
  for (let at = pdf.indexOf("/Type"); at !== -1; at = pdf.indexOf("/Type", at + 5)) {
    if (/^\s*\/Page\b/.test(pdf.toString("latin1", at + 5, at + 24))) pages++;
  }
  return pages;
}
