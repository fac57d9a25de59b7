import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { billedInputTokens, type CalibratorSnapshot, createCalibrator } from "./calibrator.ts";

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 1000 : 100;
const openai = (tokens: number): object => ({ prompt_tokens: tokens });

describe("billedInputTokens", () => {
  it.each([
    [
      "Anthropic, cached text beside the rest",
      { input_tokens: 10, cache_creation_input_tokens: 200, cache_read_input_tokens: 3000, output_tokens: 7 },
      3210,
    ],
    ["Anthropic without a cache", { input_tokens: 10, cache_creation_input_tokens: null, output_tokens: 7 }, 10],
    ["Anthropic, everything cached", { input_tokens: 0, cache_read_input_tokens: 3000 }, 3000],
    [
      "OpenAI chat, cached text inside",
      {
        prompt_tokens: 3210,
        prompt_tokens_details: { cached_tokens: 3000 },
        completion_tokens: 7,
        total_tokens: 3217,
      },
      3210,
    ],
    [
      "OpenAI responses, cached text inside",
      { input_tokens: 3210, input_tokens_details: { cached_tokens: 3000 }, output_tokens: 7 },
      3210,
    ],
    ["a server that fills both shapes", { prompt_tokens: 3210, input_tokens: 3210 }, 3210],
    ["no usage", undefined, undefined],
    ["an empty usage", {}, undefined],
    ["zeros", { input_tokens: 0, output_tokens: 0 }, undefined],
    ["text for numbers", { prompt_tokens: "12" }, undefined],
  ])("reads %s", (_, usage, tokens) => {
    expect(billedInputTokens(usage)).toBe(tokens);
  });
});

describe("createCalibrator", () => {
  it("returns an estimate unchanged before anything was billed", () => {
    const calibrator = createCalibrator({ family: "claude-5" });
    expect(calibrator.correct(12_345)).toBe(12_345);
    expect(calibrator.margin(10_000)).toBe(1000);
  });

  it("takes the billed total as given and estimates only what was appended", () => {
    const calibrator = createCalibrator({ family: "claude-5" });
    calibrator.observe({ estimated: 1000, usage: { input_tokens: 5, cache_read_input_tokens: 8995 } });
    expect(calibrator.correct(1000)).toBe(9000);
    expect(calibrator.correct(1500)).toBe(9500);
    expect(calibrator.margin(6000)).toBe(500);
  });

  it("learns nothing from small appends, where framing outweighs text", () => {
    const calibrator = createCalibrator({ family: "o200k" });
    for (let turn = 0; turn < 50; turn++) {
      calibrator.observe({ estimated: 1000 + 300 * turn, usage: openai(1000 + 450 * turn) });
    }
    expect(calibrator.correct(1000 + 300 * 49 + 1000)).toBe(1000 + 450 * 49 + 1000);
    expect(calibrator.snapshot().residuals).toEqual([]);
  });

  it("ignores a response without usage", () => {
    const calibrator = createCalibrator({ family: "o200k" });
    calibrator.observe({ estimated: 1000, usage: openai(1200) });
    const before = calibrator.snapshot();
    calibrator.observe({ estimated: 5000, usage: null });
    expect(calibrator.snapshot()).toBe(before);
  });

  it("does not learn from a total that shrank, but anchors on it", () => {
    const calibrator = createCalibrator({ family: "o200k" });
    calibrator.observe({ estimated: 50_000, usage: openai(60_000) });
    calibrator.observe({ estimated: 20_000, usage: openai(26_000) });
    calibrator.observe({ estimated: 30_000, usage: openai(20_000) });
    expect(calibrator.correct(31_000)).toBe(21_000);
  });

  it("keeps ratio and overhead when history was rewritten, and nothing when the model changed", () => {
    const calibrator = createCalibrator({ family: "o200k" });
    const bill = (estimated: number): number => 3000 + 1.25 * estimated;
    for (let turn = 0; turn < 200; turn++) {
      calibrator.observe({ estimated: 2000 * turn, usage: openai(bill(2000 * turn)) });
    }
    calibrator.reset("history");
    expect(calibrator.snapshot().anchor).toBeNull();
    expect(Math.abs(calibrator.correct(40_000) - bill(40_000))).toBeLessThan(0.01 * bill(40_000));
    calibrator.reset("history");
    expect(Math.abs(calibrator.correct(40_000) - bill(40_000))).toBeLessThan(0.01 * bill(40_000));
    calibrator.reset("model");
    expect(calibrator.snapshot()).toEqual(createCalibrator({ family: "o200k" }).snapshot());
  });

  it("never leaves the range of plausible ratios", () => {
    const property = fc.property(fc.array(fc.tuple(fc.nat(20_000), fc.nat(200_000))), (turns) => {
      const calibrator = createCalibrator({ family: "claude-3" });
      let [estimated, billed] = [1, 1];
      for (const [moreEstimated, moreBilled] of [[0, 0] as const, ...turns]) {
        estimated += moreEstimated;
        billed += moreBilled;
        calibrator.observe({ estimated, usage: openai(billed) });
      }
      const appended = calibrator.correct(estimated + 1000) - billed;
      expect(appended).toBeGreaterThanOrEqual(700);
      expect(appended).toBeLessThanOrEqual(1600);
    });
    fc.assert(property, { numRuns });
  });

  it("converges on a constant ratio", () => {
    const deltas = fc.array(fc.integer({ min: 301, max: 8000 }), { minLength: 60, maxLength: 80 });
    const property = fc.property(fc.double({ min: 0.7, max: 1.6, noNaN: true }), deltas, (ratio, appended) => {
      const calibrator = createCalibrator({ family: "claude-5" });
      let estimated = 5000;
      for (const delta of appended) {
        calibrator.observe({ estimated, usage: openai(9000 + ratio * estimated) });
        estimated += delta;
      }
      const bill = 9000 + ratio * estimated;
      const lastDelta = appended.at(-1)!;
      expect(Math.abs(calibrator.correct(estimated) - bill)).toBeLessThanOrEqual(1 + 0.02 * lastDelta);
    });
    fc.assert(property, { numRuns });
  });

  it("follows a ratio that changes, and keeps a bounded number of residuals", () => {
    const calibrator = createCalibrator({ family: "claude-5" });
    let [estimated, billed] = [0, 1];
    for (let turn = 0; turn < 400; turn++) {
      calibrator.observe({ estimated, usage: openai(billed) });
      estimated += 1000;
      billed += turn < 250 ? 800 : 1400;
    }
    const correction = calibrator.correct(estimated) - (billed - 1400);
    expect(correction).toBeGreaterThan(1370);
    expect(correction).toBeLessThanOrEqual(1401);
    expect(calibrator.snapshot().residuals).toHaveLength(100);
  });

  it("is not misled by one turn with content that nobody counted", () => {
    const calibrator = createCalibrator({ family: "claude-5" });
    for (let turn = 0; turn <= 20; turn++) {
      calibrator.observe({ estimated: 1000 * turn, usage: openai(3000 + 1000 * turn) });
    }
    calibrator.observe({ estimated: 21_000, usage: openai(80_000) });
    expect(calibrator.correct(22_000)).toBeGreaterThanOrEqual(81_000);
    expect(calibrator.correct(22_000)).toBeLessThan(81_100);
  });

  it("covers about 95 of 100 residuals by its margin", () => {
    const seeds = Array.from({ length: numRuns / 5 }, (_, seed) => seed);
    const shares = seeds.map((seed) => coveredShare(createRandom(seed)));
    const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
    expect(mean).toBeGreaterThan(0.94);
    expect(mean).toBeLessThan(0.97);
    expect(Math.min(...shares)).toBeGreaterThan(0.9);
  });

  it("continues from a snapshot that went through JSON", () => {
    const first = createCalibrator({ family: "claude-5" });
    for (let turn = 1; turn < 10; turn++) first.observe({ estimated: 1000 * turn, usage: openai(1300 * turn) });
    const snapshot = JSON.parse(JSON.stringify(first.snapshot())) as CalibratorSnapshot;
    const second = createCalibrator({ family: "claude-5", snapshot });
    for (const each of [first, second]) each.observe({ estimated: 15_000, usage: openai(20_000) });
    expect(second.snapshot()).toEqual(first.snapshot());
    expect(second.correct(16_000)).toBe(first.correct(16_000));
  });

  it("ignores a snapshot of another family", () => {
    const first = createCalibrator({ family: "claude-5" });
    first.observe({ estimated: 1000, usage: openai(9000) });
    expect(createCalibrator({ family: "o200k", snapshot: first.snapshot() }).correct(2000)).toBe(2000);
  });

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY])("refuses %d as an estimate", (estimate) => {
    const calibrator = createCalibrator({ family: "o200k" });
    const refusal = expect.objectContaining({ code: "invalid_argument" });
    expect(() => calibrator.correct(estimate)).toThrow(refusal);
    expect(() => calibrator.margin(estimate)).toThrow(refusal);
    expect(() => calibrator.observe({ estimated: estimate, usage: openai(1) })).toThrow(refusal);
  });

  it("ignores a damaged snapshot", () => {
    const learnt = createCalibrator({ family: "claude-5" });
    learnt.observe({ estimated: 1000, usage: openai(1500) });
    learnt.observe({ estimated: 3000, usage: openai(4500) });
    const good = learnt.snapshot();
    const again = createCalibrator({ family: "claude-5", snapshot: JSON.parse(JSON.stringify(good)) });
    expect(again.correct(3000)).toBe(4500);
    const fresh = createCalibrator({ family: "claude-5" });
    const numbers = [undefined, null, Number.NaN, Number.POSITIVE_INFINITY, -1, "12", {}];
    const damaged: unknown[] = [
      null,
      "claude-5",
      { family: "claude-5" },
      { ...good, anchor: undefined },
      { ...good, anchor: 5 },
      { ...good, appended: null },
      { ...good, appended: { billed: 0, estimated: 0 } },
      { ...good, residuals: null },
      { ...good, residuals: { length: 3 } },
      { ...good, residuals: [0.1, null] },
      { ...good, residuals: [Number.NaN] },
      ...numbers.flatMap((number) => [
        { ...good, overhead: number },
        { ...good, anchor: { ...good.anchor, billed: number } },
        { ...good, anchor: { ...good.anchor, estimated: number } },
        { ...good, appended: { ...good.appended, billed: number } },
        { ...good, appended: { ...good.appended, estimated: number } },
      ]),
    ];
    for (const snapshot of damaged) {
      const calibrator = createCalibrator({ family: "claude-5", snapshot: snapshot as CalibratorSnapshot });
      expect(calibrator.snapshot()).toEqual(fresh.snapshot());
      expect([calibrator.correct(3000), calibrator.margin(3000)]).toEqual([3000, 300]);
    }
  });
});

/** Returns how often a bill stays within correction and margin, in a session with noise around a ratio of 1.2. */
function coveredShare(random: () => number): number {
  const calibrator = createCalibrator({ family: "claude-5" });
  let [estimated, billed, covered] = [5000, 14_000, 0];
  for (let turn = -100; turn < 1000; turn++) {
    calibrator.observe({ estimated, usage: openai(billed) });
    const appended = 400 + 4000 * random();
    estimated += appended;
    billed += appended * (1.2 + 0.2 * (random() + random() + random() - 1.5));
    if (turn >= 0 && billed <= calibrator.correct(estimated) + calibrator.margin(estimated)) covered += 1;
  }
  return covered / 1000;
}

function createRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
