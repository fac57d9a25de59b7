import type { Counter } from "../../tokens/index.ts";
import type { ToolLimit } from "../adapter.ts";

/** The size of a text in a unit: UTF-8 bytes, Unicode characters, lines (a last one without line break too) or the counter's tokens. */
export function measure(text: string, unit: ToolLimit["unit"], counter: Counter): number {
  if (unit === "bytes") return Buffer.byteLength(text);
  if (unit === "tokens") return counter.count(text);
  return unit === "chars" ? countCharacters(text) : countLines(text);
}

function countCharacters(text: string): number {
  let pairs = 0;
  for (let at = 0; at < text.length; at++) if ((text.charCodeAt(at) & 0xfc00) === 0xdc00) pairs++;
  return text.length - pairs;
}

function countLines(text: string): number {
  if (text === "") return 0;
  let lines = text.endsWith("\n") ? 0 : 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}
