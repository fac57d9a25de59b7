import { messageOf, shorten } from "../../text/index.ts";
import type { CompressInput, Compressor } from "./compressor.ts";
import { genericCompressor } from "./generic.ts";

/** One line of at most `maxCharacters`, whatever the compressor does. Where it fails the generic one takes over, and the line says so. */
export function compressResult(compressor: Compressor, input: CompressInput, maxCharacters: number): string {
  return shorten(attempt(compressor, input), maxCharacters);
}

function attempt(compressor: Compressor, input: CompressInput): string {
  try {
    const text: unknown = compressor(input);
    if (typeof text === "string" && text.trim() !== "") return text;
    return fallBack(input, typeof text === "string" ? "it gave nothing" : `it gave ${typeof text}`);
  } catch (error) {
    return fallBack(input, messageOf(error));
  }
}

function fallBack(input: CompressInput, reason: string): string {
  return `[no summary by ${shorten(input.tool, 40)}: ${shorten(reason, 80)}] ${genericText(input)}`;
}

/** The last resort must not fail in turn, whatever the data is. */
function genericText(input: CompressInput): string {
  try {
    return genericCompressor(input);
  } catch {
    return "The result cannot be shown.";
  }
}
