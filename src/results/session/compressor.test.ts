import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ToolArguments } from "./budgeted-tool.ts";
import { testCompressor } from "./compressor.contract.ts";
import type { Envelope } from "./envelope.ts";
import {
  type Compressor,
  compressResult,
  createLogEntry,
  genericCompressor,
  type LogEntry,
  renderEntry,
} from "./log-entry.ts";
import { quarterCounter } from "./sample-tool.contract.ts";

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 5_000 : 200;
const frame = { returned: 2, offset: 0, truncated: false };

testCompressor({ name: "any tool", compress: genericCompressor }, [
  { args: {}, data: { lines: ["one", "two"], ...frame }, text: "one two" },
  {
    args: {},
    data: { tags: ["a"], rows: [{ a: 1 }, { a: 2 }], ...frame, truncated: true, total: 90 },
    text: '2 of 90 rows: {"a":1} {"a":2}',
  },
  { args: {}, data: { server: "x", lines: [], ...frame, returned: 0 }, text: '{"server":"x","lines":[]}' },
  {
    args: {},
    data: { lines: [], ...frame, returned: 0, left_out: { fields: ["a", "+2 more"], token: "r1:fields+0" } },
    text: '{"lines":[]}, left out: a, +2 more',
  },
]);

describe("the work log", () => {
  const data = { lines: ["the first line", "the second"], ...frame };
  const enter = (compressor: Compressor): string => compressResult(compressor, { tool: "t", args: {}, data }, 500);

  it("falls back to the generic compressor, and says so, if one throws or returns nothing", () => {
    const throwing = enter(() => {
      throw new TypeError("Cannot read properties of undefined");
    });
    expect(throwing).toBe("[no summary by t: Cannot read properties of undefined] the first line the second");
    expect(enter(() => " \n")).toBe("[no summary by t: it returned nothing] the first line the second");
    expect(enter(() => undefined as unknown as string)).toContain("it returned undefined");
  });

  it("cuts a long text with one ellipsis, never inside a character", () => {
    const text = enter(() => "🚢".repeat(500_000));
    expect(text).toBe(`${"🚢".repeat(249)}…`);
    expect(enter(() => "x".repeat(1_000_000))).toBe(`${"x".repeat(499)}…`);
  });

  it("has entries of at most 500 characters on every path", () => {
    const anything = fc.oneof(
      fc.string({ unit: "binary", maxLength: 3_000 }),
      fc.constant("x".repeat(1_048_576)),
      fc.constant(undefined),
      fc.constant(7),
    );
    const steps = fc.record({
      tool: fc.string({ unit: "binary", maxLength: 300 }),
      args: fc.dictionary(fc.string(), fc.jsonValue()),
      compressed: anything,
      thrown: fc.option(anything, { nil: null }),
      data: fc.dictionary(fc.string(), fc.jsonValue()),
    });
    const check = ({ tool, args, compressed, thrown, data }: Drawn): void => {
      const compressor: Compressor = () => {
        if (thrown !== null) throw thrown;
        return compressed as string;
      };
      const entry = enterStep({ id: "r123456", tool, args, time: new Date(0), compressor, data });
      const text = renderEntry(entry);
      expect(text.length).toBeLessThanOrEqual(500);
      expect(text).not.toMatch(/[\r\n]/);
      expect(entry.result).not.toBe("");
      expect(entry.result.length).toBeGreaterThan(thrown === null && compressed === "x".repeat(1_048_576) ? 200 : 0);
      expect(entry.tokens).toBe(quarterCounter.count(text));
    };
    fc.assert(fc.property(steps, check), { numRuns });
    type Drawn = typeof steps extends fc.Arbitrary<infer Value> ? Value : never;
  });

  it("has the tool's name, its arguments and the time in an entry", () => {
    const time = new Date(Date.UTC(2026, 10, 15, 10, 31, 7));
    const compressor = (): string => "Found 50 matches";
    const entry = enterStep({ id: "r12", tool: "search_content", args: { pattern: "x" }, time, compressor, data: {} });
    expect(renderEntry(entry)).toBe('r12 2026-11-15T10:31:07.000Z search_content {"pattern":"x"}: Found 50 matches');
  });
});

interface Entered {
  readonly id: string;
  readonly tool: string;
  readonly args: ToolArguments;
  readonly time: Date;
  readonly compressor: Compressor;
  readonly data: object;
}

function enterStep({ data, ...step }: Entered): LogEntry {
  const envelope = { status: "success", data } as Envelope;
  return createLogEntry({ ...step, envelope, origin: step }, quarterCounter);
}
