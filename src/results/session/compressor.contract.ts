/** Tests what every compressor must do: return the expected text of each sample as one line, return the same text each
 *  time, leave its input unchanged, and always produce an entry of the work log. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { BudgetedTool } from "./budgeted-tool.ts";
import { type CompressInput, compressResult } from "./log-entry.ts";

export interface CompressorSample {
  readonly args: CompressInput["args"];
  /** The `data` of a delivered envelope. */
  readonly data: CompressInput["data"];
  /** The expected summary. */
  readonly text: string;
}

const mostCharacters = 500;
const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 2_000 : 100;

export function testCompressor(
  { name, compress }: Pick<BudgetedTool, "name" | "compress">,
  samples: readonly CompressorSample[],
): void {
  const inputs = samples.map(({ args, data }) => ({ tool: name, args, data }));
  const enter = (input: CompressInput): string => compressResult(compress, input, mostCharacters);

  describe(`the compressor of ${name}`, () => {
    it.each(samples.map((sample, index) => [sample.text, index] as const))("says: %s", (text, index) => {
      expect(enter(inputs[index]!)).toBe(text);
    });

    it("returns the same text each time, and does not change its input", () => {
      for (const input of inputs) {
        const copy = JSON.stringify(input);
        freeze(input);
        expect(compress(input)).toBe(compress(input));
        expect(JSON.stringify(input)).toBe(copy);
      }
    });

    it("fits into an entry with a thousand times the items, and with long texts", () => {
      for (const input of inputs) {
        for (const grow of [manyItems, longTexts]) {
          const text = enter({ ...input, data: grow(input.data) as CompressInput["data"] });
          expect(text.length).toBeLessThanOrEqual(mostCharacters);
          expect(text).not.toContain("[no summary");
        }
      }
    });

    it("fits into an entry for any data", () => {
      const changed = fc.record({
        input: fc.constantFrom(...inputs),
        changes: fc.dictionary(fc.constantFrom(...inputs.flatMap(keysOf)), fc.jsonValue()),
      });
      const check = ({ input, changes }: { input: CompressInput; changes: Record<string, unknown> }) => {
        const text = enter({ ...input, data: { ...input.data, ...changes } });
        expect(text).toMatch(/^\S.*$/u);
        expect(text.length).toBeLessThanOrEqual(mostCharacters);
      };
      fc.assert(fc.property(changed, check), { numRuns });
    });
  });
}

function keysOf({ data }: CompressInput): string[] {
  return Object.keys(data);
}

function freeze(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  Object.freeze(value);
  for (const child of Object.values(value)) freeze(child);
}

function manyItems(data: CompressInput["data"]): unknown {
  const entries = Object.entries(data).map(([name, value]) => [
    name,
    Array.isArray(value) ? Array.from({ length: 1_000 }, () => value).flat() : value,
  ]);
  return Object.fromEntries(entries);
}

function longTexts(value: unknown): unknown {
  if (typeof value === "string") return value.repeat(1_000);
  if (Array.isArray(value)) return value.map(longTexts);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, longTexts(child)]));
}
